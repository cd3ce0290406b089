// SPDX-License-Identifier: Apache-2.0
// Rules linked into the test, one per kind of rewrite.
#pragma once

#include <fusebox/abi/plugin.h>

// t.rules, rules for composites (a, b) -> c of f32 by default:
//   t.swap     -> t.op (b, a) {k of the composite}          t.twice    -> t.op (a, a)
//   t.pass     -> a                                         t.two      -> RELU(t.op (a, b))
//   t.first    -> t.id (a)                                  t.scale    -> t.id of a x 2, scaled by a constant
//   t.const    requires a constant b                       t.state    requires a variable b
//   t.unread   (a) -> (c, d) requires unused d               t.outer    always declines; t.outer2 -> t.op (a, b)
//   t.better   two rules: t.better.high (benefit 9) is tried first and declines, then t.better.low declines
//   t.control  emits a WHILE                                t.huge     requests a constant of 2^52 bytes
//   t.typo     -> ADD (a, b) {its attribute "key": its attribute "value"}
//   t.checked  -> t.op (a, b) {k of the composite, or its "raw"}      t.throws   throws in match
//   t.product  -> FULLY_CONNECTED (a, TRANSPOSE (b))
//   t.gap      -> t.op (a, b, nothing)
//   t.weigh    requires a constant b -> t.weights (a, b, or b reversed, or reversed and transposed: its "how")
//   t.late     -> b x a constant, which is written after the product
// Both plugins have a rule for t.shared.
// Kernels: t.op (x, y) -> x - y, t.id (x) -> x, t.weights (x, y) -> x - y, if y is constant and begins with
// "first".
extern const fbx_entry kRules, kOtherRules;
