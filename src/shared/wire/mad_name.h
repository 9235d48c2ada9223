/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MADs by name, as the specification writes them (volume 1, sections 13.4.5, 14.2.5, 15.2.5 and
 * 16.1.4): SubnAdmSet(MCMemberRecord) is class, method and attribute. The messages of communication
 * management, which have one method, go by their own names: REQ, DREP. Pure functions.
 */
#ifndef WIRE_MAD_NAME_H
#define WIRE_MAD_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad.h"

/* NULL: @mgmt_class has none that is known. Attributes that all classes have are not here. */
const char *wire_mad_method_name(uint8_t mgmt_class, uint8_t method);
const char *wire_mad_attribute_name(uint8_t mgmt_class, uint16_t attribute);

/* MADs of one name, or of the beginning of one; 0: of all classes, methods, attributes. */
struct wire_mad_kind {
	uint8_t mgmt_class; /* SUBN_LID stands for SUBN_DIRECTED, too */
	uint8_t method;
	uint16_t attribute;
};

/*
 * As in "SubnAdmSet(MCMemberRecord)", "SubnAdmSet", "SubnAdm(MCMemberRecord)", "SubnAdm", "REQ" or
 * "*"; upper and lower case are one. False: it is no such name.
 */
bool wire_mad_kind_parse(const char *text, struct wire_mad_kind *kind);

/* Whether the MAD, of MAD_BYTES, is of that kind. */
bool wire_mad_is(const struct wire_mad_kind *kind, const uint8_t *mad);

#endif
