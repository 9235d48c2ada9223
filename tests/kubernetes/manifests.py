#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The manifests in packaging/kubernetes are what Kubernetes takes: manifests.py DIRECTORY PLUGIN, in the sandbox of tests.

The fields of the API's objects, their types, and which must be there, are those of its OpenAPI schemas, of which Debian's
python3-kubernetes is made. What schemas do not say follows: names that refer to others, and the programs' options. Last, manifests
are spoilt, and each mistake has to be found.
"""

import copy
import pathlib
import re
import subprocess
import sys

import yaml
from kubernetes.client import models

LABEL = r'[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?'
QUALIFIED = r'(%s(\.%s)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?' % (LABEL, LABEL)
QUANTITY = r'[0-9]+(\.[0-9]+)?(m|k|[KMGTPE]i?)?'

PLAIN = {'str': str, 'int': int, 'bool': bool, 'float': (int, float)}

# kind's own file, as far as it is used here
KIND = {'apiVersion': 'kind.x-k8s.io/v1alpha4', 'kind': 'Cluster',
        'nodes': [{'role': ('control-plane', 'worker'), 'extraMounts': [{'hostPath': str, 'containerPath': str}]}]}


class Wrong(Exception):
    pass


def need(right, path, words):
    if not right:
        raise Wrong('%s: %s' % (path, words))


def check_value(kind, value, path):
    """A value against its type, as python3-kubernetes writes that."""
    inner = re.fullmatch(r'(list\[|dict\(str, )(.*)[\])]', kind)
    if inner and kind.startswith('list'):
        need(isinstance(value, list), path, 'it is no list')
        for number, element in enumerate(value):
            check_value(inner[2], element, '%s[%d]' % (path, number))
    elif inner:
        need(isinstance(value, dict), path, 'it is no map')
        for key, element in value.items():
            need(re.fullmatch(QUALIFIED, key), path, "'%s' is no name" % key)
            if path.rsplit('.', 1)[-1] in ('limits', 'requests'):
                need(not isinstance(element, bool) and re.fullmatch(QUANTITY, str(element)), path, 'no quantity')
                need('/' not in key or str(element).isdecimal(), path, 'of devices there are whole ones')
            else:
                check_value(inner[2], element, path + '.' + key)
    elif kind in PLAIN:
        need(isinstance(value, PLAIN[kind]) and (kind == 'bool') == isinstance(value, bool), path, 'it is no ' + kind)
    elif kind != 'object':
        check_object(getattr(models, kind), value, path)


def check_object(model, value, path):
    need(isinstance(value, dict), path, 'it is no %s' % model.__name__)
    attributes = {name: attribute for attribute, name in model.attribute_map.items()}
    for name, element in value.items():
        need(name in attributes, path, "%s has no field '%s'" % (model.__name__, name))
        check_value(model.openapi_types[attributes[name]], element, path + '.' + name)
    try:
        model(**{attributes[name]: element for name, element in value.items()})
    except ValueError as error:  # a field that must be there is not
        raise Wrong('%s: %s' % (path, error)) from None


def check_kind(pattern, value, path):
    if isinstance(pattern, dict):
        need(isinstance(value, dict) and set(value) <= set(pattern), path, 'it has other fields')
        for name, element in value.items():
            check_kind(pattern[name], element, path + '.' + name)
    elif isinstance(pattern, list):
        for element in value:
            check_kind(pattern[0], element, path)
    elif isinstance(pattern, type):
        need(isinstance(value, pattern), path, 'it is no ' + pattern.__name__)
    else:
        need(value in pattern if isinstance(pattern, tuple) else value == pattern, path, "it is '%s'" % value)


def options_of(program, plugin):
    command = [plugin] if program[0] == 'umbel-device-plugin' else program
    said = subprocess.run([*command, '--help'], stdout=subprocess.PIPE, check=True, text=True).stdout
    return set(re.findall(r'--[a-z-]+', said))


def check_pod(spec, path, plugin):
    volumes = {volume['name'] for volume in spec.get('volumes', [])}
    names = [container['name'] for container in spec['containers']]
    need(len(set(names)) == len(names) and all(re.fullmatch(LABEL, name) for name in names), path, 'names of containers')
    used = set()
    for container in spec['containers']:
        where = path + '.' + container['name']
        mounts = [mount['name'] for mount in container.get('volumeMounts', [])]
        need(set(mounts) <= volumes, where, 'it mounts a volume that is not there')
        used |= set(mounts)
        variables = {variable['name'] for variable in container.get('env', [])}
        command = container['command']
        need(set(re.findall(r'\$\((\w+)\)', ' '.join(command))) <= variables, where, 'it has no such variable')
        program = command[:2] if command[0] == 'umbel' else command[:1]
        if program[0].startswith('umbel'):
            options = {word for word in command if word.startswith('--')}
            need(options <= options_of(program, plugin), where, 'its program has no such option')
    need(used == volumes, path, 'nobody mounts a volume')


def check(manifest, plugin):
    """One object of a manifest."""
    need(isinstance(manifest, dict) and {'apiVersion', 'kind'} <= set(manifest), 'manifest', 'it is no object')
    kind = manifest['kind']
    if manifest['apiVersion'] == KIND['apiVersion']:
        check_kind(KIND, manifest, kind)
        return
    need((manifest['apiVersion'], kind) in {('apps/v1', 'DaemonSet'), ('v1', 'Pod')}, kind, 'there is no such object here')
    check_object(getattr(models, 'V1' + kind), manifest, kind)
    need(re.fullmatch(LABEL, manifest['metadata']['name']), kind, 'it has no name')
    spec = manifest['spec']
    if kind == 'DaemonSet':
        labels = spec['template']['metadata']['labels']
        need(spec['selector']['matchLabels'].items() <= labels.items(), kind, 'it does not select its own pods')
        spec = spec['template']['spec']
    check_pod(spec, kind, plugin)


def spoil(manifests, plugin):
    """Mistakes, and what is said of them."""
    def daemons(manifest):
        return manifest['spec']['template']['spec']

    mistakes = {
        "has no field 'comand'": lambda m: daemons(m)['containers'][0].update(comand=['umbel']),
        "has no field 'hostIpc'": lambda m: daemons(m).update(hostIpc=True),
        'terminationGracePeriodSeconds: it is no int': lambda m: daemons(m).update(terminationGracePeriodSeconds='5'),
        'command[3]: it is no str': lambda m: daemons(m)['containers'][0]['command'].__setitem__(3, 8),
        'labels.a: it is no str': lambda m: m['metadata']['labels'].update(a=True),
        'it is no list': lambda m: daemons(m).update(tolerations={'operator': 'Exists'}),
        'must not be `None`': lambda m: daemons(m)['containers'][0].pop('name'),
        'it does not select its own pods': lambda m: m['spec']['template']['metadata'].update(labels={'a': 'b'}),
        'it mounts a volume that is not there': lambda m: daemons(m)['volumes'].pop(),
        'its program has no such option': lambda m: daemons(m)['containers'][0]['command'].append('--host'),
        'it has no such variable': lambda m: daemons(m)['containers'][1]['command'].append('$(NODE)'),
        'of devices there are whole ones':
            lambda m: daemons(m)['containers'][0].update(resources={'limits': {'umbel/hca': '500m'}}),
        'there is no such object here': lambda m: m.update(apiVersion='apps/v1beta1'),
    }
    for words, mistake in mistakes.items():
        spoilt = copy.deepcopy(manifests)
        mistake(spoilt)
        try:
            check(spoilt, plugin)
        except Wrong as wrong:
            need(words in str(wrong), 'a mistake', "'%s' is said, not '%s'" % (wrong, words))
        else:
            raise Wrong("nobody has found the mistake '%s'" % words)


def main():
    directory, plugin = pathlib.Path(sys.argv[1]), sys.argv[2]
    loaded = {}
    for path in sorted(directory.glob('*.yaml')):
        # without YAML's anchors, by which a change in one place is one in two
        loaded[path.name] = [yaml.safe_load(yaml.dump(manifest, Dumper=Plain))
                             for manifest in yaml.safe_load_all(path.read_text())]
    try:
        need({'umbel.yaml', 'roce.yaml', 'kind-nodes.yaml', 'kind.yaml', 'pods.yaml'} == set(loaded), directory, 'other files')
        for name, manifests in loaded.items():
            for manifest in manifests:
                try:
                    check(manifest, plugin)
                except Wrong as wrong:
                    raise Wrong('%s: %s' % (name, wrong)) from None
        roles = [node['role'] for node in loaded['kind.yaml'][0]['nodes']]
        workers = ['kind-worker%s' % (number if number > 1 else '') for number in range(1, roles.count('worker') + 1)]
        hosts = re.findall(r'^Hca 1 "(.*)"$', (directory / 'kind.net').read_text(), re.M)
        need(hosts == workers, 'kind.net', 'its hosts are not the workers of kind.yaml, %s' % workers)
        spoil(loaded['umbel.yaml'][0], plugin)
    except Wrong as wrong:
        sys.exit('FAIL: %s' % wrong)


class Plain(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


if __name__ == '__main__':
    main()
