/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cmocka.h needs those before it */
#include <harness.h>
#include <infiniband/verbs.h>

#include "wire/status.h"

CASE(names_and_numbers_are_those_of_verbs)
{
	assert_string_equal(wire_status_name(IBV_WC_SUCCESS), "SUCCESS");
	assert_string_equal(wire_status_name(IBV_WC_LOC_PROT_ERR), "LOC_PROT_ERR");
	assert_string_equal(wire_status_name(IBV_WC_WR_FLUSH_ERR), "WR_FLUSH_ERR");
	assert_string_equal(wire_status_name(IBV_WC_REM_ACCESS_ERR), "REM_ACCESS_ERR");
	assert_string_equal(wire_status_name(IBV_WC_RETRY_EXC_ERR), "RETRY_EXC_ERR");
	assert_string_equal(wire_status_name(IBV_WC_REM_ABORT_ERR), "REM_ABORT_ERR");
	assert_string_equal(wire_status_name(IBV_WC_GENERAL_ERR), "GENERAL_ERR");
	assert_string_equal(wire_status_name(IBV_WC_TM_RNDV_INCOMPLETE), "TM_RNDV_INCOMPLETE");
	assert_null(wire_status_name(WIRE_STATUSES));
}

CASE(a_status_is_found_by_name_or_number)
{
	assert_int_equal(wire_status_parse("IBV_WC_RETRY_EXC_ERR"), IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wire_status_parse("RETRY_EXC"), IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wire_status_parse("rnr_retry_exc"), IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(wire_status_parse("12"), IBV_WC_RETRY_EXC_ERR);
	for (int i = 0; i < WIRE_STATUSES; i++)
		assert_int_equal(wire_status_parse(wire_status_name((unsigned)i)), i);
	assert_int_equal(wire_status_parse("RETRY"), -1);
	assert_int_equal(wire_status_parse("RETRY_EXC_"), -1);
	assert_int_equal(wire_status_parse("IBV_WC_"), -1);
	assert_int_equal(wire_status_parse(""), -1);
	assert_int_equal(wire_status_parse("24"), -1);
	assert_int_equal(wire_status_parse("-1"), -1);
}
