// SPDX-License-Identifier: Apache-2.0
#include "host/graph/view.h"

#include <algorithm>
#include <cmath>

#include "host/base/no_throw.h"
#include "host/graph/flex.h"
#include "host/graph/versions.h"

namespace fusebox {
namespace {

fbx_quant ShowQuant(const Quant& quant) {
  fbx_quant view = {};
  view.head = FBX_HEAD(fbx_quant);
  const bool blockwise = quant.block_size > 0;
  view.kind = blockwise                 ? FBX_QUANT_BLOCKWISE
              : quant.scales.size() > 1 ? FBX_QUANT_PER_AXIS
                                        : FBX_QUANT_PER_TENSOR;
  view.axis = quant.axis;
  view.block_size = quant.block_size;
  view.count = static_cast<uint32_t>(quant.scales.size());
  view.scales = quant.scales.data();
  view.zero_points = quant.zero_points.data();
  return view;
}

// fbx_quant has as many zero points as scales; files may store fewer.
std::shared_ptr<const Quant> Completed(const Quant& quant) {
  auto copy = std::make_shared<Quant>(quant);
  std::vector<int64_t> zeros(quant.zero_points.begin(), quant.zero_points.end());
  zeros.resize(quant.scales.size(), zeros.size() == 1 ? zeros[0] : 0);
  copy->zero_points = zeros;
  return copy;
}

fbx_op_kind KindOf(const Node& node) {
  if (node.op == Op::kCustom) return FBX_OP_CUSTOM;
  return Info(node.op).code < 0 ? FBX_OP_INTERNAL : FBX_OP_BUILTIN;
}

}  // namespace

Result<std::shared_ptr<const Quant>> FromAbi(const fbx_quant* from) {
  constexpr size_t kSize = offsetof(fbx_quant, zero_points) + sizeof(fbx_quant::zero_points);
  if (from == nullptr || from->head.size < kSize || from->count == 0 || from->scales == nullptr)
    return Invalid("the quantization has no scales");
  const bool one = from->kind == FBX_QUANT_PER_TENSOR;
  const bool axis = from->kind == FBX_QUANT_PER_AXIS;
  const bool blocks = from->kind == FBX_QUANT_BLOCKWISE;
  if (!(one && from->count == 1) && !(axis && from->axis >= 0) && !(blocks && from->block_size > 0))
    return Invalid("the quantization is neither per tensor, nor per axis, nor blockwise");
  const std::span scales(from->scales, from->count);
  if (!std::ranges::all_of(scales, [](float scale) { return std::isfinite(scale); }))
    return Invalid("the quantization has a scale that is not finite");
  auto quant = std::make_shared<Quant>();
  quant->scales = scales;
  if (from->zero_points == nullptr) quant->zero_points = std::vector<int64_t>(from->count);
  else quant->zero_points = std::span(from->zero_points, from->count);
  quant->axis = axis ? from->axis : 0;
  quant->block_size = blocks ? from->block_size : 0;
  return quant;
}

TensorView::TensorView() : abi_quant_{} { ShowAbsent(); }

void TensorView::ShowAbsent() {
  tensor_ = {};
  tensor_.head = FBX_HEAD(fbx_tensor);
  tensor_.flags = FBX_TENSOR_ABSENT;
  quant_.reset();
}

TensorView::TensorView(const Type& type, const void* data, size_t bytes, uint32_t flags) : TensorView() {
  SetType(type);
  tensor_.flags = flags;
  tensor_.data = const_cast<void*>(data);
  tensor_.bytes = bytes;
}

TensorView::TensorView(const Value& value) : TensorView() {
  Show(value);
  if (!quant_) quant_ = value.quant;  // as the dims, it may outlive the value
  SetType(value.type);
}

void TensorView::Show(const Value& value) {
  const Shape& shape = value.type.shape;
  tensor_ = {.head = FBX_HEAD(fbx_tensor),
             .dtype = static_cast<fbx_dtype>(value.type.dtype),
             .rank = shape.rank(),
             .dims = shape.dims().data(),
             .flags = value.is_const()    ? uint32_t{FBX_TENSOR_CONST}
                      : value.is_variable ? uint32_t{FBX_TENSOR_VARIABLE}
                                          : 0,
             .uses = 0,
             .data = const_cast<std::byte*>(value.data.data()),
             .bytes = value.data.size(),
             .quant = nullptr,
             .name = AsAbi(value.name),
             .file = nullptr};
  if (value.quant == nullptr || value.quant->scales.empty()) return;
  const Quant* quant = value.quant.get();
  if (quant->zero_points.size() != quant->scales.size()) {
    quant_ = Completed(*quant);
    quant = quant_.get();
  }
  abi_quant_ = ShowQuant(*quant);
  tensor_.quant = &abi_quant_;
}

void TensorView::SetType(const Type& type) {
  dims_ = type.shape.dims();
  tensor_.dtype = static_cast<fbx_dtype>(type.dtype);
  tensor_.rank = type.shape.rank();
  tensor_.dims = dims_.data();
}

std::string_view OptionBytes(const Node& node, std::string& written) {
  if (!node.raw_options.empty() || node.op != Op::kCustom || node.attrs.empty()) return node.raw_options;
  written = WriteFlexMap(node.attrs);
  return written;
}

void NodeView::Show(const Function& function, const Node& node) {
  const size_t count = node.operands.size() + node.results.size() + node.intermediates.size();
  if (count > capacity_) {
    const size_t capacity = std::max(count, 2 * capacity_);
    pointers_.reserve(capacity);
    tensors_ = std::make_unique<TensorView[]>(capacity);
    capacity_ = capacity;
  }
  pointers_.clear();
  const auto show = [&](ValueId id) {
    TensorView& view = tensors_[pointers_.size()];
    if (id != kNoValue) view.Show(function.value(id));
    else view.ShowAbsent();
    pointers_.push_back(view.abi());
  };
  for (const ValueId id : node.operands) show(id);
  for (const ValueId id : node.results) show(id);
  for (const ValueId id : node.intermediates) show(id);
  for (const int i : StateOperands(node.op)) {
    if (static_cast<size_t>(i) >= node.operands.size()) continue;
    fbx_tensor& state = tensors_[static_cast<size_t>(i)].edit();
    if ((state.flags & (FBX_TENSOR_ABSENT | FBX_TENSOR_CONST)) == 0) state.flags |= FBX_TENSOR_VARIABLE;
  }
  const bool named = node.op == Op::kCustom || node.op == Op::kOpaque;
  node_ = {};
  node_.head = FBX_HEAD(fbx_node);
  node_.kind = KindOf(node);
  node_.op = AsAbi(named ? std::string_view(node.name) : Name(node.op));
  node_.version = node.version != 0 ? node.version : LowestVersion(function, node);
  node_.attrs = AsAbi(node.attrs);
  const std::string_view raw_options = OptionBytes(node, written_);
  node_.raw_options = {raw_options.data(), raw_options.size()};
  node_.operand_count = static_cast<uint32_t>(node.operands.size());
  node_.result_count = static_cast<uint32_t>(node.results.size());
  node_.operands = pointers_.data();
  node_.results = pointers_.data() + node.operands.size();
  node_.location = AsAbi(node.location.name);
  if (node.intermediates.empty()) return;
  node_.intermediates = node_.results + node.results.size();
  node_.intermediate_count = static_cast<uint32_t>(node.intermediates.size());
}

const fbx_file* FileViews::Of(const Value& value) {
  if (!value.is_const()) return nullptr;
  if (value.data.owner() == last_.first) return last_.second;
  last_ = {value.data.owner(), nullptr};
  const MappedFile* const file = value.data.file();
  if (file == nullptr) return nullptr;
  auto [found, fresh] = files_.try_emplace(file);
  if (fresh) {
    found->second = {.head = FBX_HEAD(fbx_file),
                     .path = AsAbi(file->path),
                     .device = file->device,
                     .inode = file->inode,
                     .size = file->bytes.size(),
                     .modified_ns = file->modified_ns,
                     .changed_ns = file->changed_ns,
                     .data = file->bytes.data()};
  }
  last_.second = &found->second;
  return last_.second;
}

struct GraphView::Impl {
  Impl(const Module& module, const Function& function) : module(module), function(function), graph{} {
    graph.abi.head = FBX_HEAD(fbx_graph);
    graph.abi.name = AsAbi(function.name);
    graph.abi.value_count = static_cast<uint32_t>(function.value_count());
    inputs.assign(function.inputs.begin(), function.inputs.end());
    outputs.assign(function.outputs.begin(), function.outputs.end());
    for (size_t i = 0; i < function.nodes.size(); ++i) {
      if (function.nodes[i] != nullptr) live.push_back(i);
    }
    values.resize(graph.abi.value_count);
    nodes.resize(live.size());
    graph.abi.node_count = static_cast<uint32_t>(live.size());
    graph.abi.input_count = static_cast<uint32_t>(inputs.size());
    graph.abi.output_count = static_cast<uint32_t>(outputs.size());
    graph.abi.inputs = inputs.data();
    graph.abi.outputs = outputs.data();
    graph.abi.value = kNoThrow<ShowValue, NoMemory>;
    graph.abi.node = kNoThrow<ShowNodeOf, NoMemory>;
    graph.abi.function = kNoThrow<ShowFunction, NoMemory>;
    graph.self = this;
  }

  static Impl& Of(const fbx_graph* abi) { return *reinterpret_cast<const Handle*>(abi)->self; }
  static std::nullptr_t NoMemory(const fbx_graph*) { return nullptr; }
  static const fbx_tensor* ShowValue(const fbx_graph* self, fbx_value id) { return Of(self).Show(id); }
  static const fbx_node* ShowNodeOf(const fbx_graph* self, uint32_t index, const fbx_value** ids) {
    return Of(self).ShowNode(index, ids);
  }
  static const fbx_graph* ShowFunction(const fbx_graph* self, fbx_str name) {
    return Of(self).Nested(FromAbi(name));
  }

  const fbx_tensor* Show(fbx_value id) {
    if (id >= graph.abi.value_count) return nullptr;
    auto& view = values[id];
    if (view == nullptr) {
      const Value& value = function.value(static_cast<ValueId>(id));
      auto made = std::make_unique<TensorView>(value);
      made->edit().file = files.Of(value);
      view = std::move(made);
    }
    return view->abi();
  }

  const fbx_node* ShowNode(uint32_t index, const fbx_value** ids) {
    if (index >= live.size()) return nullptr;
    Shown& shown = nodes[index];
    if (shown.view == nullptr) {
      const Node& node = *function.nodes[live[index]];
      auto view = std::make_unique<NodeView>(function, node);
      for (size_t i = 0; i < node.operands.size(); ++i) {
        if (node.operands[i] != kNoValue)
          view->operand(i).edit().file = files.Of(function.value(node.operands[i]));
      }
      // The cast turns kNoValue into FBX_NO_VALUE.
      shown.ids.assign(node.operands.begin(), node.operands.end());
      shown.ids.insert(shown.ids.end(), node.results.begin(), node.results.end());
      shown.view = std::move(view);
    }
    if (ids != nullptr) *ids = shown.ids.data();
    return shown.view->abi();
  }

  const fbx_graph* Nested(std::string_view name) {
    const Function* callee = module.Find(name);
    if (callee == nullptr) return nullptr;
    auto& view = functions[callee];
    if (view == nullptr) view = std::make_unique<GraphView>(module, *callee);
    return view->abi();
  }

  struct Handle {
    fbx_graph abi;  // first: callbacks receive its address
    Impl* self = nullptr;
  };
  struct Shown {
    std::unique_ptr<NodeView> view;
    std::vector<fbx_value> ids;
  };
  const Module& module;
  const Function& function;
  Handle graph;
  std::vector<fbx_value> inputs, outputs;
  std::vector<size_t> live;  // indices of the existing nodes
  std::vector<std::unique_ptr<TensorView>> values;
  std::vector<Shown> nodes;
  FileViews files;
  std::map<const Function*, std::unique_ptr<GraphView>> functions;
};

GraphView::GraphView(const Module& module, const Function& function)
    : impl_(std::make_unique<Impl>(module, function)) {}
GraphView::~GraphView() = default;
const fbx_graph* GraphView::abi() const { return &impl_->graph.abi; }

static_assert(static_cast<uint32_t>(kNoValue) == FBX_NO_VALUE);

}  // namespace fusebox
