#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""schema.py SCHEMA DIRECTORY: holds what `umbel show --json` has printed, files VIEW.*, against the schema. A property that
is not in it is wrong; so is a property without a description, and one that none of the files has, but for those that are read from
standard input, a line each."""
import glob
import json
import os
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
KNOWN = {"$ref", "description", "type", "required", "properties", "additionalProperties", "items", "enum", "const", "pattern"}

with open(sys.argv[1], encoding="utf-8") as file:
    defs = json.load(file)["$defs"]
seen, wrong = set(), []


def resolve(schema):
    while "$ref" in schema:
        schema = defs[schema["$ref"].removeprefix("#/$defs/")]
    return schema


def check_object(value, schema, path, kind):
    for key in schema.get("required", []):
        if key not in value:
            wrong.append(f"{path}: no '{key}'")
    for key, member in value.items():
        if key in schema.get("properties", {}):
            seen.add((kind, key))
            check(member, schema["properties"][key], f"{path}.{key}", f"{kind}.{key}")
        elif "additionalProperties" in schema:
            check(member, schema["additionalProperties"], f"{path}.{key}", f"{kind}.*")
        else:
            wrong.append(f"{path}: '{key}' is not in the schema")


def check(value, schema, path, kind):
    if "$ref" in schema:
        kind = schema["$ref"].removeprefix("#/$defs/")
    schema = resolve(schema)
    if "type" in schema and (not isinstance(value, TYPES[schema["type"]]) or
                             (isinstance(value, bool) and schema["type"] != "boolean")):
        wrong.append(f"{path}: {value!r} is no {schema['type']}")
    elif "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        wrong.append(f"{path}: {value!r}")
    elif "pattern" in schema and not re.search(schema["pattern"], value):
        wrong.append(f"{path}: {value!r} does not fit {schema['pattern']}")
    elif isinstance(value, dict):
        check_object(value, schema, path, kind)
    elif isinstance(value, list):
        for i, member in enumerate(value):
            check(member, schema["items"], f"{path}[{i}]", kind)


def properties(schema, kind):
    """All that there are, each once: where it is and its name."""
    unknown = set(schema) - KNOWN
    if unknown:
        wrong.append(f"{kind}: the schema says {unknown}, which this test does not know")
    for key, member in schema.get("properties", {}).items():
        if "description" not in member and "description" not in resolve(member):
            wrong.append(f"{kind}: '{key}' has no description")
        yield kind, key
        yield from properties(member, f"{kind}.{key}")
    if "items" in schema:
        yield from properties(schema["items"], kind)


texts = 0
for name in sorted(glob.glob(os.path.join(sys.argv[2], "*.json"))):
    view = os.path.basename(name).split(".")[0]
    with open(name, encoding="utf-8") as file:
        text = file.read()
    while text.strip():  # of --watch: one behind the other
        shown, end = json.JSONDecoder().raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        check(shown, {"$ref": f"#/$defs/{view}"}, os.path.basename(name), view)
        texts += 1
excepted = {tuple(line.split()) for line in sys.stdin if line.strip()}
for view, schema in defs.items():
    for kind, key in properties(schema, view):
        if (kind, key) not in seen and (kind, key) not in excepted:
            wrong.append(f"{kind}: no '{key}' was met")
for line in wrong[:40]:
    print(line)
print(f"{texts} texts, {len(seen)} properties met")
sys.exit(bool(wrong) or not texts)
