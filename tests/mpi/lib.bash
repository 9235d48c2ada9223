# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Open MPI and MPICH as Debian ships them, over UCX and UD unless a script says otherwise: what the MPI
# scripts of tests/system, tests/hosts and tests/roce share. Sourced after lib.sh of each.

export UCX_TLS=ud_verbs,self
# MPICH receives into memory with gaps in whole elements of its datatype, and fails ("Message truncated")
# when UCX cuts a message elsewhere. RC's pieces are this less 29 bytes, by default 8,227.
export UCX_RC_VERBS_SEG_SIZE=8257 UCX_WARN_UNUSED_ENV_VARS=n
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1	# of Open MPI 5
export OMPI_MCA_plm_rsh_agent=false OMPI_MCA_btl_base_warn_component_unused=0
export OMPI_MCA_pml=ucx OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any
export MPIR_CVAR_NOLOCAL=1	# MPICH's own shared memory is not what is tested

# MPICH's mpirun passes the end of its input on to the first host's proxy, and dies of SIGPIPE (or prints nothing of
# what a short program says) if that has ended just then, on any network. So the input has no end.
mkfifo "$TMPDIR/no-input"
exec 0<> "$TMPDIR/no-input"

# The programs, collectives.openmpi and so on.
for mpi in openmpi mpich; do
	for program in collectives rma; do
		mpicc.$mpi -O2 -o "$TMPDIR/$program.$mpi" "${BASH_SOURCE[0]%/*}/$program.c" || exit 1
	done
done

# rank.sh COMMAND...: the command on the host of its rank, of four.
cat > "$TMPDIR/rank.sh" <<'END'
exec umbel exec h$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} % 4 + 1)) -- "$@"
END

# use_libfabric PROVIDER: Open MPI sends over libfabric. Collectives go by messages.
use_libfabric()
{
	export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_mtl_ofi_provider_include=$1
}

# one_sided_libfabric PROVIDER: one-sided operations go that way, too. In Open MPI 4 they are messages. (The other
# component, rdma, uses shared memory beside it, and crashes there without libfabric too.) Version 5 has
# only the other one, which wants a byte transfer layer; nonzero: it does not take this provider.
one_sided_libfabric()
{
	use_libfabric "$1"
	if ompi_info | grep -q 'MCA osc: pt2pt '; then
		export OMPI_MCA_osc=pt2pt
	else
		[[ $1 != *ofi_rxm ]] || return 1
		export OMPI_MCA_osc=rdma OMPI_MCA_pml=ob1 OMPI_MCA_btl=ofi,self OMPI_MCA_btl_ofi_mode=2
		export OMPI_MCA_btl_ofi_provider_include=$1
	fi
}

# run_mpi MPI RANKS COMMAND... With UD a rank aborts if another one is silent for 30 s, as it may be if the machine
# stands still. Not so long with MPICH, whose ranks leave MPI_Finalize() one by one: the last may wait for all that
# time for an acknowledgement of one that has ended.
run_mpi()
{
	local mpi=$1 ranks=$2
	shift 2
	case $mpi in
	openmpi) UCX_UD_TIMEOUT=300s timeout 500 mpirun.openmpi --oversubscribe --bind-to none -n "$ranks" "$@" ;;
	mpich) timeout 500 mpirun.mpich -n "$ranks" "$@" ;;
	esac
}
