// SPDX-License-Identifier: Apache-2.0
// Rules linked into the test, one per kind of rewrite.
#pragma once

#include <fusebox/abi/plugin.h>

// t.rules, rules for composites (a, b) -> c of f32 unless said otherwise:
//   t.swap     -> t.op (b, a) {k of the composite}          t.twice    -> t.op (a, a)
//   t.pass     -> a                                         t.two      -> RELU(t.op (a, b))
//   t.first    -> t.id (a)                                  t.scale    -> t.id of a x 2, scaled by a constant
//   t.const    needs a constant b                           t.state    needs a variable b
//   t.unread   (a) -> (c, d) needs that nobody reads d      t.outer    declines always; t.outer2 -> t.op (a, b)
//   t.better   two rules: t.better.low says no, t.better.high (benefit 9) is asked first and says no too
//   t.control  emits a WHILE                                t.huge     asks for a constant of 2^52 bytes
//   t.typo     -> ADD (a, b) {its attribute "key": its attribute "value"}
//   t.checked  -> t.op (a, b) {k of the composite, or its "raw"}      t.throws   throws in match
//   t.product  -> FULLY_CONNECTED (a, TRANSPOSE (b))
//   t.gap      -> t.op (a, b, nothing)
// Both plugins have a rule for t.shared.
// Kernels: t.op (x, y) -> x - y, t.id (x) -> x.
extern const fbx_entry kRules, kOtherRules;
