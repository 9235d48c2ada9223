/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records of subnet administration except MCMemberRecord (sa.h), with the bits of their
 * component masks (InfiniBand specification volume 1, section 15.2.5), for wire_match() of field.h.
 * In responses a record is padded to a multiple of 8 bytes, as AttributeOffset requires. Fields are
 * in host order; GIDs are bytes. Pure functions.
 */
#ifndef WIRE_SA_RECORDS_H
#define WIRE_SA_RECORDS_H

#include "wire/notice.h"
#include "wire/sa.h"
#include "wire/sm_attr.h"

#define LAYOUTS "wire/sa_records.def"
#include "wire/declare.def"

/* The bits of component masks, by the names of members: SA_PR(dgid), SA_NR(info.node_guid). */
#define SA_NR(m)          WIRE_COMPONENTS(node_record, m)
#define SA_PIR(m)         WIRE_COMPONENTS(port_info_record, m)
#define SA_SLVL(m)        WIRE_COMPONENTS(sl_to_vl_record, m)
#define SA_SWIR(m)        WIRE_COMPONENTS(switch_info_record, m)
#define SA_LFTR(m)        WIRE_COMPONENTS(linear_ft_record, m)
#define SA_MFTR(m)        WIRE_COMPONENTS(multicast_ft_record, m)
#define SA_VLAR(m)        WIRE_COMPONENTS(vl_arb_record, m)
#define SA_SMIR(m)        WIRE_COMPONENTS(sm_info_record, m)
#define SA_PKTR(m)        WIRE_COMPONENTS(pkey_table_record, m)
#define SA_IIR(m)         WIRE_COMPONENTS(inform_info_record, m)
#define SA_LR(m)          WIRE_COMPONENTS(link_record, m)
#define SA_SR(m)          WIRE_COMPONENTS(service_record, m)
#define SA_PR(m)          WIRE_COMPONENTS(path_record, m)
#define SA_GIR(m)         WIRE_COMPONENTS(guid_info_record, m)
#define SA_MPR(m)         WIRE_COMPONENTS(multipath_record, m)
#define SA_MPR_SERVICE_ID (SA_MPR(service_id_msb) | SA_MPR(service_id_lsb))

/*
 * The sgid_count + dgid_count GIDs after the record at @in, which has @bytes bytes with them. The
 * result points into @in; NULL: @bytes is too small.
 */
const struct ib_gid *wire_multipath_gids(const uint8_t *in, size_t bytes);

#endif
