/* SPDX-License-Identifier: Apache-2.0 */
/* The library that one faulty plugin needs, and does not find when it is loaded. */
int fault_gone(void);
__attribute__((visibility("default"))) int fault_gone(void) { return 0; }
