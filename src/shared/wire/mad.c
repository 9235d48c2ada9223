/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The methods of MADs: see mad.h.
 */
#include "wire/mad.h"

uint8_t wire_mad_response_method(uint8_t method)
{
	switch (method) {
	case MAD_GET:
	case MAD_SET:
		return MAD_GET_RESP;
	case MAD_TRAP:
		return MAD_TRAP_REPRESS;
	case MAD_GET_TRACE_TABLE:
		return MAD_GET_TABLE_RESP;
	case MAD_REPORT:
	case MAD_GET_TABLE:
	case MAD_GET_MULTI:
	case MAD_DELETE:
		return method | MAD_METHOD_RESPONSE;
	default:
		return 0;
	}
}
