# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# For cmake --toolchain: a build for 64-bit ARM with Debian's cross compiler and its arm64 packages.
# Tests run under qemu-user. Used by tools/arm64.sh.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
