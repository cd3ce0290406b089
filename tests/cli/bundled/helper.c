/* SPDX-License-Identifier: Apache-2.0 */
int bundled_answer(void);
int bundled_answer(void) { return 42; }
