/* SPDX-License-Identifier: Apache-2.0 */
// Resolvers with all ops of Fusebox and its plugins, and ops that the application adds.
#ifndef FUSEBOX_TFLITE_KERNELS_REGISTER_H_
#define FUSEBOX_TFLITE_KERNELS_REGISTER_H_

#include "fusebox/tflite/mutable_op_resolver.h"

namespace tflite {
namespace ops {
namespace builtin {

class BuiltinOpResolverWithoutDefaultDelegates : public MutableOpResolver {
 public:
  bool has_builtins() const override { return true; }
};

class BuiltinOpResolver : public BuiltinOpResolverWithoutDefaultDelegates {
 public:
  bool has_default_delegates() const override { return true; }
};

using BuiltinOpResolverWithXNNPACK = BuiltinOpResolver;

}  // namespace builtin
}  // namespace ops
}  // namespace tflite

#endif
