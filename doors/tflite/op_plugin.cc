// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/op_plugin.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace fusebox::tflite {
namespace {

using Kernel = OpPlugin::Kernel;

fbx_str Str(std::string_view text) { return {text.data(), text.size()}; }

fbx_status Fail(const fbx_host* host, fbx_status status, const std::string& message) {
  const fbx_diag diag{.head = FBX_HEAD(fbx_diag),
                      .severity = FBX_ERROR,
                      .code = Str("APPLICATION"),
                      .message = Str(message),
                      .subject = {}};
  host->emit(host, &diag);
  return status;
}

// Runs what may run out of memory.
template <class F>
fbx_status CallOp(const fbx_host* host, F&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return FBX_OUT_OF_MEMORY;
  } catch (...) {
    return Fail(host, FBX_INTERNAL, "the op threw an exception");
  }
}

bool AreKnown(const fbx_node& node) {
  for (uint32_t i = 0; i < node.operand_count; ++i) {
    const fbx_tensor& tensor = *node.operands[i];
    if ((tensor.flags & FBX_TENSOR_ABSENT) != 0) continue;
    if (tensor.rank < 0 || std::find(tensor.dims, tensor.dims + tensor.rank, -1) != tensor.dims + tensor.rank)
      return false;
  }
  return true;
}

// Before its inputs have dims, prepare cannot run; if it fails, the kernel's prepare reports it.
fbx_status OpInfer(const fbx_host* host, void* user, const fbx_node* node, const fbx_infer* out) noexcept {
  return CallOp(host, [&]() -> fbx_status {
    const Kernel& kernel = *static_cast<const Kernel*>(user);
    OpInstance* instance = AreKnown(*node) ? kernel.plugin->Find(*kernel.op, *node) : nullptr;
    const bool prepared =
        instance != nullptr && !instance->failed() && instance->Prepare(*node, true) == kTfLiteOk;
    for (uint32_t i = 0; i < node->result_count; ++i) {
      const fbx_dtype declared = node->results[i]->dtype;
      if ((node->results[i]->flags & FBX_TENSOR_ABSENT) != 0) continue;
      const TfLiteTensor* tensor = prepared ? &instance->result(i) : nullptr;
      if (tensor == nullptr || tensor->allocation_type == kTfLiteDynamic) {
        out->set(out, i, tensor != nullptr ? DTypeOf(tensor->type) : declared, nullptr, -1);
        continue;
      }
      const std::vector<int64_t> dims(tensor->dims->data, tensor->dims->data + tensor->dims->size);
      out->set(out, i, DTypeOf(tensor->type), dims.data(), tensor->dims->size);
    }
    return FBX_OK;
  });
}

fbx_status OpInit(const fbx_host* host, void* user, const fbx_node* node, void** out) noexcept {
  return CallOp(host, [&]() -> fbx_status {
    const Kernel& kernel = *static_cast<const Kernel*>(user);
    OpInstance* instance = kernel.plugin->Claim(*kernel.op, *node);
    if (instance->failed()) return Fail(host, FBX_INVALID, "init of the application's op failed");
    *out = instance;
    return FBX_OK;
  });
}

fbx_status OpPrepare(const fbx_host* host, void*, const void* instance, const fbx_node* node, const fbx_plan*,
                     void**) noexcept {
  return CallOp(host, [&]() -> fbx_status {
    auto* op = static_cast<OpInstance*>(const_cast<void*>(instance));
    if (op->Prepare(*node, false) == kTfLiteOk) return FBX_OK;
    return Fail(host, FBX_INVALID, "prepare of the application's op failed");
  });
}

fbx_status OpInvoke(const fbx_host* host, void*, const void* instance, void*, const fbx_node* node) noexcept {
  return CallOp(host, [&]() -> fbx_status {
    auto* op = static_cast<OpInstance*>(const_cast<void*>(instance));
    const auto* resize = static_cast<const fbx_resize*>(host->get_extension(host, Str(FBX_EXT_RESIZE)));
    if (op->Invoke(host, *node, resize) == kTfLiteOk) return FBX_OK;
    return Fail(host, FBX_INVALID, "invoke of the application's op failed");
  });
}

void OpFree(void* user, void* instance) noexcept {
  static_cast<const Kernel*>(user)->plugin->Release(static_cast<OpInstance*>(instance));
}

fbx_kernel KernelOf(const AppOp& op) {
  return {.head = FBX_HEAD(fbx_kernel),
          .kind = op.custom() ? FBX_OP_CUSTOM : FBX_OP_BUILTIN,
          .op = Str(op.name()),
          .min_version = op.version(),
          .max_version = op.version(),
          .flags = 0,
          .user = nullptr,
          .supports = nullptr,
          .infer = OpInfer,
          .init = OpInit,
          .prepare = OpPrepare,
          .invoke = OpInvoke,
          .reset = nullptr,
          .free_state = nullptr,
          .free = OpFree};
}

// An entry has no pointer to its plugin; the registry calls load in the thread that adds it.
thread_local const fbx_plugin* added = nullptr;

fbx_status Load(const fbx_host*, const fbx_plugin** out) noexcept {
  *out = added;
  return added != nullptr ? FBX_OK : FBX_INTERNAL;
}

}  // namespace

OpPlugin::OpPlugin(std::vector<AppOp> ops, const OpEnvironment& environment)
    : ops_(std::move(ops)), environment_(environment) {
  for (const AppOp& op : ops_) {
    Kernel& kernel = kernels_.emplace_back(this, &op);
    kernel.abi = KernelOf(op);
    kernel.abi.user = &kernel;
    list_.push_back(&kernel.abi);
  }
  abi_ = {.head = FBX_HEAD(fbx_plugin),
          .id = Str("application.ops"),
          .version = Str("1.0.0"),
          .kernel_count = static_cast<uint32_t>(list_.size()),
          .kernels = list_.data()};
  entry_ = {.magic = FBX_ENTRY_MAGIC,
            .major = FBX_ABI_MAJOR,
            .minor = FBX_ABI_MINOR,
            .size = sizeof(fbx_entry),
            .flags = FBX_BUILD_FLAGS,
            .min_host_minor = 0,
            .build = Str("ops of the application"),
            .load = Load,
            .unload = nullptr};
}

fusebox_status OpPlugin::AddTo(fusebox_registry* registry, char** error) {
  added = &abi_;
  const fusebox_status status = fusebox_registry_add_plugin(registry, &entry_, nullptr, error);
  added = nullptr;
  return status;
}

std::vector<OpPlugin::Use>& OpPlugin::UsesOf(const fbx_node& node) {
  std::string key(node.op.ptr, node.op.len);
  const auto add = [&](const void* bytes, size_t size) {
    key += '\0';
    key.append(static_cast<const char*>(bytes), size);
  };
  add(node.location.ptr, node.location.len);
  for (uint32_t i = 0; i < node.result_count; ++i) add(node.results[i]->name.ptr, node.results[i]->name.len);
  add(node.raw_options.ptr, node.raw_options.len);
  return uses_[key];
}

OpInstance* OpPlugin::Find(const AppOp& op, const fbx_node& node) {
  std::vector<Use>& uses = UsesOf(node);
  if (uses.empty()) uses.push_back({std::make_unique<OpInstance>(op, environment_, node), false});
  return uses.front().instance.get();
}

OpInstance* OpPlugin::Claim(const AppOp& op, const fbx_node& node) {
  std::vector<Use>& uses = UsesOf(node);
  const auto free = std::ranges::find(uses, false, &Use::claimed);
  if (free != uses.end()) {
    free->claimed = true;
    return free->instance.get();
  }
  return uses.emplace_back(std::make_unique<OpInstance>(op, environment_, node), true).instance.get();
}

void OpPlugin::Release(const OpInstance* instance) {
  for (auto& [key, uses] : uses_)
    std::erase_if(uses, [&](const Use& use) { return use.instance.get() == instance; });
}

}  // namespace fusebox::tflite
