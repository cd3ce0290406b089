// SPDX-License-Identifier: Apache-2.0
// TfLiteInterpreterOptions of TensorFlow Lite's C API.
#include "doors/tflite/options.h"

#include <new>
#include <ranges>

using fusebox::tflite::AddedOp;
using fusebox::tflite::AppOp;
using fusebox::tflite::Guarded;
using fusebox::tflite::Reporter;
using fusebox::tflite::Resolver;

namespace {

TfLiteRegistration_V1 FirstMembers(const void* registration) {
  return *static_cast<const TfLiteRegistration_V1*>(registration);
}

template <class T>
using FindBuiltin = const T* (*)(void*, TfLiteBuiltinOperator, int);
template <class T>
using FindCustom = const T* (*)(void*, const char*, int);

template <class T, class Builtin>
Resolver ResolverOf(Builtin find_builtin, FindCustom<T> find_custom, void* user_data) {
  Resolver resolver;
  resolver.builtin_function = reinterpret_cast<void (*)()>(find_builtin);
  resolver.custom_function = reinterpret_cast<void (*)()>(find_custom);
  resolver.user_data = user_data;
  resolver.find_builtin = [](const Resolver& r, int32_t code, int version) -> const void* {
    const auto find = reinterpret_cast<Builtin>(r.builtin_function);
    return find ? find(r.user_data, static_cast<TfLiteBuiltinOperator>(code), version) : nullptr;
  };
  resolver.find_custom = [](const Resolver& r, const char* name, int version) -> const void* {
    const auto find = reinterpret_cast<FindCustom<T>>(r.custom_function);
    return find ? find(r.user_data, name, version) : nullptr;
  };
  return resolver;
}

template <class T>
void SetResolver(TfLiteInterpreterOptions* options, FindBuiltin<T> find_builtin, FindCustom<T> find_custom,
                 void* user_data) {
  options->resolver = ResolverOf<T>(find_builtin, find_custom, user_data);
}

void Add(TfLiteInterpreterOptions* options, AddedOp op) {
  Guarded(options->reporter, 0, [&] {
    options->ops.push_back(std::move(op));
    return 0;
  });
}

bool Fits(const AddedOp& op, const fusebox_opcode& code) {
  if (op.builtin_code != code.builtin_code) return false;
  if (op.builtin_code == kTfLiteBuiltinCustom && op.name != code.name) return false;
  return op.min_version <= code.version && code.version <= op.max_version;
}

}  // namespace

std::optional<AppOp> TfLiteInterpreterOptions::Resolve(const fusebox_opcode& code) const {
  for (const AddedOp& op : std::views::reverse(ops)) {
    if (!Fits(op, code)) continue;
    if (const auto* external = std::get_if<const TfLiteOperator*>(&op.functions))
      return AppOp(code, *external);
    return AppOp(code, std::get<TfLiteRegistration_V1>(op.functions));
  }
  if (!resolver) return std::nullopt;
  const void* found = code.builtin_code == kTfLiteBuiltinCustom
                          ? resolver->find_custom(*resolver, code.name, code.version)
                          : resolver->find_builtin(*resolver, code.builtin_code, code.version);
  if (found == nullptr) return std::nullopt;
  if (resolver->external) return AppOp(code, static_cast<const TfLiteOperator*>(found));
  return AppOp(code, FirstMembers(found));
}

TfLiteInterpreterOptions* TfLiteInterpreterOptionsCreate(void) {
  return new (std::nothrow) TfLiteInterpreterOptions();
}

TfLiteInterpreterOptions* TfLiteInterpreterOptionsCopy(const TfLiteInterpreterOptions* from) {
  return Guarded(from->reporter, static_cast<TfLiteInterpreterOptions*>(nullptr),
                 [&] { return new TfLiteInterpreterOptions(*from); });
}

void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions* options) { delete options; }

void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions* options, int32_t num_threads) {
  options->threads = num_threads < 1 ? 1 : num_threads;
  options->refused_threads = num_threads < -1 ? num_threads : 0;
}

void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions* options, TfLiteOpaqueDelegate* delegate) {
  if (delegate == nullptr) return;
  Guarded(options->reporter, 0, [&] {
    options->delegates.push_back(delegate);
    return 0;
  });
}

void TfLiteInterpreterOptionsSetErrorReporter(TfLiteInterpreterOptions* options,
                                              void (*reporter)(void*, const char*, va_list),
                                              void* user_data) {
  options->reporter = Reporter(reporter, user_data);
}

void TfLiteInterpreterOptionsAddOperator(TfLiteInterpreterOptions* options, TfLiteOperator* registration) {
  Add(options, {registration->builtin_code, registration->custom_name, 1, registration->version,
                static_cast<const TfLiteOperator*>(registration)});
}

void TfLiteInterpreterOptionsAddRegistrationExternal(TfLiteInterpreterOptions* options,
                                                     TfLiteRegistrationExternal* registration) {
  TfLiteInterpreterOptionsAddOperator(options, registration);
}

TfLiteStatus TfLiteInterpreterOptionsEnableCancellation(TfLiteInterpreterOptions* options, bool enable) {
  options->cancellable = enable;
  return kTfLiteOk;
}

void TfLiteInterpreterOptionsAddBuiltinOp(TfLiteInterpreterOptions* options, TfLiteBuiltinOperator op,
                                          const TfLiteRegistration* registration, int32_t min_version,
                                          int32_t max_version) {
  Add(options, {op, {}, min_version, max_version, FirstMembers(registration)});
}

void TfLiteInterpreterOptionsAddCustomOp(TfLiteInterpreterOptions* options, const char* name,
                                         const TfLiteRegistration* registration, int32_t min_version,
                                         int32_t max_version) {
  Add(options, {kTfLiteBuiltinCustom, name, min_version, max_version, FirstMembers(registration)});
}

void TfLiteInterpreterOptionsSetOpResolver(TfLiteInterpreterOptions* options,
                                           FindBuiltin<TfLiteRegistration> find_builtin_op,
                                           FindCustom<TfLiteRegistration> find_custom_op, void* user_data) {
  SetResolver(options, find_builtin_op, find_custom_op, user_data);
}

void TfLiteInterpreterOptionsSetOpResolverExternal(
    TfLiteInterpreterOptions* options, const TfLiteOperator* (*find_builtin_op)(void*, int, int),
    const TfLiteOperator* (*find_custom_op)(void*, const char*, int), void* user_data) {
  options->resolver = ResolverOf<TfLiteOperator>(find_builtin_op, find_custom_op, user_data);
  options->resolver->external = true;
}

void TfLiteInterpreterOptionsSetOpResolverV1(TfLiteInterpreterOptions* options,
                                             FindBuiltin<TfLiteRegistration_V1> find_builtin_op,
                                             FindCustom<TfLiteRegistration_V1> find_custom_op,
                                             void* user_data) {
  SetResolver(options, find_builtin_op, find_custom_op, user_data);
}

void TfLiteInterpreterOptionsSetOpResolverV2(TfLiteInterpreterOptions* options,
                                             FindBuiltin<TfLiteRegistration_V2> find_builtin_op,
                                             FindCustom<TfLiteRegistration_V2> find_custom_op,
                                             void* user_data) {
  SetResolver(options, find_builtin_op, find_custom_op, user_data);
}

void TfLiteInterpreterOptionsSetOpResolverV3(TfLiteInterpreterOptions* options,
                                             FindBuiltin<TfLiteRegistration_V3> find_builtin_op,
                                             FindCustom<TfLiteRegistration_V3> find_custom_op,
                                             void* user_data) {
  SetResolver(options, find_builtin_op, find_custom_op, user_data);
}

// There is no NNAPI here, and what a delegate fails to run always runs on kernels.
void TfLiteInterpreterOptionsSetUseNNAPI(TfLiteInterpreterOptions*, bool) {}
void TfLiteInterpreterOptionsSetEnableDelegateFallback(TfLiteInterpreterOptions*, bool) {}
