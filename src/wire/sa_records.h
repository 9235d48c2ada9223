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

#define SA_NR_LID               WIRE_COMPONENT(0)
#define SA_NR_BASE_VERSION      WIRE_COMPONENT(2)
#define SA_NR_CLASS_VERSION     WIRE_COMPONENT(3)
#define SA_NR_NODE_TYPE         WIRE_COMPONENT(4)
#define SA_NR_NUM_PORTS         WIRE_COMPONENT(5)
#define SA_NR_SYSTEM_IMAGE_GUID WIRE_COMPONENT(6)
#define SA_NR_NODE_GUID         WIRE_COMPONENT(7)
#define SA_NR_PORT_GUID         WIRE_COMPONENT(8)
#define SA_NR_PARTITION_CAP     WIRE_COMPONENT(9)
#define SA_NR_DEVICE_ID         WIRE_COMPONENT(10)
#define SA_NR_REVISION          WIRE_COMPONENT(11)
#define SA_NR_LOCAL_PORT_NUM    WIRE_COMPONENT(12)
#define SA_NR_VENDOR_ID         WIRE_COMPONENT(13)
#define SA_NR_DESCRIPTION       WIRE_COMPONENT(14)

#define SA_PIR_LID                    WIRE_COMPONENT(0)
#define SA_PIR_PORT_NUM               WIRE_COMPONENT(1)
#define SA_PIR_OPTIONS                WIRE_COMPONENT(2)
#define SA_PIR_M_KEY                  WIRE_COMPONENT(3)
#define SA_PIR_GID_PREFIX             WIRE_COMPONENT(4)
#define SA_PIR_BASE_LID               WIRE_COMPONENT(5)
#define SA_PIR_MASTER_SM_LID          WIRE_COMPONENT(6)
#define SA_PIR_CAPABILITY_MASK        WIRE_COMPONENT(7)
#define SA_PIR_LINK_WIDTH_ENABLED     WIRE_COMPONENT(11)
#define SA_PIR_PORT_STATE             WIRE_COMPONENT(15)
#define SA_PIR_PORT_PHYSICAL_STATE    WIRE_COMPONENT(16)
#define SA_PIR_M_KEY_PROTECT_BITS     WIRE_COMPONENT(18)
#define SA_PIR_LMC                    WIRE_COMPONENT(20)
#define SA_PIR_NEIGHBOR_MTU           WIRE_COMPONENT(23)
#define SA_PIR_VL_CAP                 WIRE_COMPONENT(25)
#define SA_PIR_MTU_CAP                WIRE_COMPONENT(31)
#define SA_PIR_OPERATIONAL_VLS        WIRE_COMPONENT(34)
#define SA_PIR_GUID_CAP               WIRE_COMPONENT(42)
#define SA_PIR_SUBNET_TIMEOUT         WIRE_COMPONENT(45)
#define SA_PIR_RESP_TIME_VALUE        WIRE_COMPONENT(47)
#define SA_PIR_CAPABILITY_MASK2       WIRE_COMPONENT(53)
#define SA_PIR_LINK_SPEED_EXT_ENABLED WIRE_COMPONENT(57)

#define SA_SLVL_LID      WIRE_COMPONENT(0)
#define SA_SLVL_IN_PORT  WIRE_COMPONENT(1)
#define SA_SLVL_OUT_PORT WIRE_COMPONENT(2)

#define SA_SWIR_LID WIRE_COMPONENT(0)

#define SA_LFTR_LID   WIRE_COMPONENT(0)
#define SA_LFTR_BLOCK WIRE_COMPONENT(1)

#define SA_MFTR_LID      WIRE_COMPONENT(0)
#define SA_MFTR_POSITION WIRE_COMPONENT(1)
#define SA_MFTR_BLOCK    WIRE_COMPONENT(3)

#define SA_VLAR_LID      WIRE_COMPONENT(0)
#define SA_VLAR_OUT_PORT WIRE_COMPONENT(1)
#define SA_VLAR_BLOCK    WIRE_COMPONENT(2)

#define SA_SMIR_LID       WIRE_COMPONENT(0)
#define SA_SMIR_GUID      WIRE_COMPONENT(2)
#define SA_SMIR_SM_KEY    WIRE_COMPONENT(3)
#define SA_SMIR_ACT_COUNT WIRE_COMPONENT(4)
#define SA_SMIR_PRIORITY  WIRE_COMPONENT(5)
#define SA_SMIR_SM_STATE  WIRE_COMPONENT(6)

#define SA_PKTR_LID      WIRE_COMPONENT(0)
#define SA_PKTR_BLOCK    WIRE_COMPONENT(1)
#define SA_PKTR_PORT_NUM WIRE_COMPONENT(2)

#define SA_IIR_SUBSCRIBER_GID  WIRE_COMPONENT(0)
#define SA_IIR_ENUM            WIRE_COMPONENT(1)
#define SA_IIR_GID             WIRE_COMPONENT(3)
#define SA_IIR_LID_RANGE_BEGIN WIRE_COMPONENT(4)
#define SA_IIR_LID_RANGE_END   WIRE_COMPONENT(5)
#define SA_IIR_IS_GENERIC      WIRE_COMPONENT(7)
#define SA_IIR_SUBSCRIBE       WIRE_COMPONENT(8)
#define SA_IIR_TYPE            WIRE_COMPONENT(9)
#define SA_IIR_TRAP_NUMBER     WIRE_COMPONENT(10)
#define SA_IIR_QPN             WIRE_COMPONENT(11)
#define SA_IIR_RESP_TIME       WIRE_COMPONENT(13)
#define SA_IIR_PRODUCER_TYPE   WIRE_COMPONENT(15)

#define SA_LR_FROM_LID  WIRE_COMPONENT(0)
#define SA_LR_FROM_PORT WIRE_COMPONENT(1)
#define SA_LR_TO_PORT   WIRE_COMPONENT(2)
#define SA_LR_TO_LID    WIRE_COMPONENT(3)

#define SA_SR_ID        WIRE_COMPONENT(0)
#define SA_SR_GID       WIRE_COMPONENT(1)
#define SA_SR_PKEY      WIRE_COMPONENT(2)
#define SA_SR_LEASE     WIRE_COMPONENT(4)
#define SA_SR_KEY       WIRE_COMPONENT(5)
#define SA_SR_NAME      WIRE_COMPONENT(6)
#define SA_SR_DATA8(i)  WIRE_COMPONENT(7 + (i))
#define SA_SR_DATA16(i) WIRE_COMPONENT(23 + (i))
#define SA_SR_DATA32(i) WIRE_COMPONENT(31 + (i))
#define SA_SR_DATA64(i) WIRE_COMPONENT(35 + (i))

#define SA_PR_SERVICE_ID    (WIRE_COMPONENT(0) | WIRE_COMPONENT(1)) /* 8 high bits, 56 low */
#define SA_PR_DGID          WIRE_COMPONENT(2)
#define SA_PR_SGID          WIRE_COMPONENT(3)
#define SA_PR_DLID          WIRE_COMPONENT(4)
#define SA_PR_SLID          WIRE_COMPONENT(5)
#define SA_PR_RAW_TRAFFIC   WIRE_COMPONENT(6)
#define SA_PR_FLOW_LABEL    WIRE_COMPONENT(8)
#define SA_PR_HOP_LIMIT     WIRE_COMPONENT(9)
#define SA_PR_TCLASS        WIRE_COMPONENT(10)
#define SA_PR_REVERSIBLE    WIRE_COMPONENT(11)
#define SA_PR_NUMB_PATH     WIRE_COMPONENT(12)
#define SA_PR_PKEY          WIRE_COMPONENT(13)
#define SA_PR_QOS_CLASS     WIRE_COMPONENT(14)
#define SA_PR_SL            WIRE_COMPONENT(15)
#define SA_PR_MTU_SELECTOR  WIRE_COMPONENT(16)
#define SA_PR_MTU           WIRE_COMPONENT(17)
#define SA_PR_RATE_SELECTOR WIRE_COMPONENT(18)
#define SA_PR_RATE          WIRE_COMPONENT(19)
#define SA_PR_LIFE_SELECTOR WIRE_COMPONENT(20)
#define SA_PR_LIFE          WIRE_COMPONENT(21)

#define SA_GIR_LID     WIRE_COMPONENT(0)
#define SA_GIR_BLOCK   WIRE_COMPONENT(1)
#define SA_GIR_GUID(i) WIRE_COMPONENT(4 + (i))

/*
 * The sgid_count + dgid_count GIDs after the record at @in, which has @bytes bytes with them. The
 * result points into @in; NULL: @bytes is too small.
 */
const struct ib_gid *wire_multipath_gids(const uint8_t *in, size_t bytes);

#define SA_MPR_RAW_TRAFFIC   WIRE_COMPONENT(0)
#define SA_MPR_FLOW_LABEL    WIRE_COMPONENT(2)
#define SA_MPR_HOP_LIMIT     WIRE_COMPONENT(3)
#define SA_MPR_TCLASS        WIRE_COMPONENT(4)
#define SA_MPR_REVERSIBLE    WIRE_COMPONENT(5)
#define SA_MPR_NUMB_PATH     WIRE_COMPONENT(6)
#define SA_MPR_PKEY          WIRE_COMPONENT(7)
#define SA_MPR_QOS_CLASS     WIRE_COMPONENT(8)
#define SA_MPR_SL            WIRE_COMPONENT(9)
#define SA_MPR_MTU_SELECTOR  WIRE_COMPONENT(10)
#define SA_MPR_MTU           WIRE_COMPONENT(11)
#define SA_MPR_RATE_SELECTOR WIRE_COMPONENT(12)
#define SA_MPR_RATE          WIRE_COMPONENT(13)
#define SA_MPR_LIFE_SELECTOR WIRE_COMPONENT(14)
#define SA_MPR_LIFE          WIRE_COMPONENT(15)
#define SA_MPR_SERVICE_ID    (WIRE_COMPONENT(16) | WIRE_COMPONENT(21))
#define SA_MPR_INDEPENDENCE  WIRE_COMPONENT(17)
#define SA_MPR_SGID_COUNT    WIRE_COMPONENT(19)
#define SA_MPR_DGID_COUNT    WIRE_COMPONENT(20)

#define LAYOUTS "wire/sa_records.def"
#include "wire/declare.def"

#endif
