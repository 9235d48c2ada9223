# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Creates a queue pair of a type that Umbel does not have, so that it says why.
from pyverbs.cq import CQ
from pyverbs.device import Context, get_device_list
from pyverbs.enums import IBV_QPT_RAW_PACKET
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr

context = Context(name=get_device_list()[0].name.decode())
attributes = QPInitAttr(qp_type=IBV_QPT_RAW_PACKET, scq=CQ(context, 1), rcq=CQ(context, 1), cap=QPCap())
QP(PD(context), attributes)
