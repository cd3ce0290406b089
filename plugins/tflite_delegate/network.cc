// SPDX-License-Identifier: Apache-2.0
#include "plugins/tflite_delegate/network.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fusebox::tflite_delegate {
namespace {

constexpr int32_t kDelegateCode = 51;
constexpr size_t kAlignment = 64;

std::span<const int> Numbers(const TfLiteIntArray* array) {
  if (array == nullptr) return {};
  return {array->data, static_cast<size_t>(array->size)};
}

bool Contains(std::span<const int> list, int value) { return std::ranges::find(list, value) != list.end(); }

std::vector<int> IdsOf(std::span<const fbx_value> ids) { return {ids.begin(), ids.end()}; }

}  // namespace

Network::Op::~Op() {
  for (TfLiteIntArray* array : {node.inputs, node.outputs, node.intermediates, node.temporaries})
    std::free(array);
}

Network::Params::Params(const Subset& subset, TfLiteDelegate* delegate)
    : raw{delegate, NewIntArray(subset.nodes), NewIntArray(subset.inputs), NewIntArray(subset.outputs)} {}

Network::Params::~Params() {
  for (TfLiteIntArray* array : {raw.nodes_to_replace, raw.input_tensors, raw.output_tensors})
    std::free(array);
}

Network::Network(const Vendor& vendor, const Graph& graph, const std::vector<uint32_t>& nodes,
                 Purpose purpose)
    : vendor_(vendor), purpose_(purpose), inputs_(IdsOf(graph.inputs())), outputs_(IdsOf(graph.outputs())) {
  tensors_.resize(graph.value_count());
  for (TfLiteTensor& tensor : tensors_) tensor.buffer_handle = kTfLiteNullBufferHandle;
  for (const uint32_t number : nodes) {
    const GraphNode node = graph.node(number);
    const auto show = [&](fbx_value id) {
      if (id != FBX_NO_VALUE && tensors_[id].dims == nullptr) tensors_[id] = NewTensor(graph.value(id));
    };
    for (uint32_t i = 0; i < node.in_count(); ++i) show(node.in_id(i));
    for (uint32_t i = 0; i < node.out_count(); ++i) show(node.out_id(i));
    AddOp(node, number);
  }
  FillContext();
}

// Kernels are freed before the delegate that made them.
Network::~Network() {
  for (const auto& op : ops_) {
    if (op->is_kernel && op->registration.free != nullptr)
      op->registration.free(&context_, op->node.user_data);
  }
  delegate_.reset();
  for (TfLiteTensor& tensor : tensors_) FreeTensor(tensor);
  std::free(shown_plan_);
}

void Network::AddOp(const GraphNode& node, uint32_t number) {
  auto op = std::make_unique<Op>();
  op->number = number;
  const bool custom = node.abi()->kind == FBX_OP_CUSTOM;
  op->registration.builtin_code = custom ? 32 : CodeOf(node);
  op->registration.version = node.version();
  if (custom) {
    op->name = std::string(node.op());
    const std::string_view raw = node.raw_options();
    op->options.assign(reinterpret_cast<const std::byte*>(raw.data()),
                       reinterpret_cast<const std::byte*>(raw.data()) + raw.size());
    op->registration.custom_name = op->name.c_str();
    op->node.custom_initial_data = op->options.data();
    op->node.custom_initial_data_size = static_cast<int>(op->options.size());
  } else {
    op->options = BuiltinData(node);
    op->node.builtin_data = op->options.data();
  }
  std::vector<int> inputs, outputs;
  for (uint32_t i = 0; i < node.in_count(); ++i)
    inputs.push_back(node.in_id(i) == FBX_NO_VALUE ? kTfLiteOptionalTensor : static_cast<int>(node.in_id(i)));
  for (uint32_t i = 0; i < node.out_count(); ++i) outputs.push_back(static_cast<int>(node.out_id(i)));
  op->node.inputs = NewIntArray(inputs);
  op->node.outputs = NewIntArray(outputs);
  op->node.intermediates = NewIntArray({});
  op->node.temporaries = NewIntArray({});
  plan_.push_back(static_cast<int>(ops_.size()));
  ops_.push_back(std::move(op));
}

void Network::Fail(const std::string& what) const {
  throw Error{FBX_UNSUPPORTED, vendor_.library() + ": " + what + (error_.empty() ? "" : ": " + error_)};
}

void Network::ApplyDelegate() {
  delegate_ = vendor_.Create();
  if (delegate_->Prepare(&context_, delegate_.get()) != kTfLiteOk) Fail("the delegate fails in Prepare");
  for (const int node : plan_) {
    if (ops_[static_cast<size_t>(node)]->is_kernel &&
        ops_[static_cast<size_t>(node)]->node.user_data == nullptr && !error_.empty())
      Fail("a kernel of the delegate fails in init");
  }
}

// Follows the order of the nodes, so that each subset runs when the ones before it have run.
std::vector<Network::Subset> Network::Partition(const TfLiteIntArray* nodes) const {
  std::vector<Subset> out;
  std::set<int> pending(plan_.begin(), plan_.end());
  const auto waits = [&](int node) {
    return std::ranges::any_of(Numbers(ops_[static_cast<size_t>(node)]->node.inputs), [&](int input) {
      return std::ranges::any_of(pending, [&](int other) {
        return other != node && Contains(Numbers(ops_[static_cast<size_t>(other)]->node.outputs), input);
      });
    });
  };
  while (!pending.empty()) {
    Subset subset;
    for (const int node : plan_) {
      if (!pending.contains(node) || waits(node)) continue;
      const bool replaced = Contains(Numbers(nodes), node);
      if (subset.nodes.empty()) subset.replaced = replaced;
      if (replaced != subset.replaced) continue;
      subset.nodes.push_back(node);
      pending.erase(node);
    }
    FindBorder(subset);
    out.push_back(std::move(subset));
  }
  return out;
}

void Network::FindBorder(Subset& subset) const {
  std::set<int> made;
  std::set<int> read_outside(outputs_.begin(), outputs_.end());
  for (const int node : plan_) {
    const TfLiteNode& raw = ops_[static_cast<size_t>(node)]->node;
    const bool inside = Contains(subset.nodes, node);
    if (inside) made.insert(raw.outputs->data, raw.outputs->data + raw.outputs->size);
    else read_outside.insert(raw.inputs->data, raw.inputs->data + raw.inputs->size);
  }
  std::set<int> inputs;
  for (const int node : subset.nodes) {
    for (const int input : Numbers(ops_[static_cast<size_t>(node)]->node.inputs)) {
      if (input >= 0 && !made.contains(input)) inputs.insert(input);
    }
  }
  subset.inputs.assign(inputs.begin(), inputs.end());
  std::ranges::set_intersection(made, read_outside, std::back_inserter(subset.outputs));
}

TfLiteStatus Network::Preview(const TfLiteIntArray* nodes, TfLiteDelegateParams** out, int* count) {
  previews_.clear();
  shown_previews_.clear();
  for (const Subset& subset : Partition(nodes)) {
    if (subset.replaced) shown_previews_.push_back(previews_.emplace_back(subset, delegate_.get()).raw);
  }
  *out = shown_previews_.data();
  *count = static_cast<int>(shown_previews_.size());
  return kTfLiteOk;
}

TfLiteStatus Network::Replace(TfLiteRegistration kernel, const TfLiteIntArray* nodes,
                              TfLiteDelegate* delegate) {
  for (const int node : Numbers(nodes)) {
    if (node < 0 || static_cast<size_t>(node) >= ops_.size() || ops_[static_cast<size_t>(node)]->is_kernel) {
      context_.ReportError(&context_, "node %d cannot be replaced", node);
      return kTfLiteError;
    }
    replaced_.insert(ops_[static_cast<size_t>(node)]->number);
  }
  if (purpose_ == Purpose::kClaim) return kTfLiteOk;
  const std::vector<Subset> subsets = Partition(nodes);
  plan_.clear();
  for (const Subset& subset : subsets) {
    if (subset.replaced) AddKernel(kernel, subset, delegate);
    else plan_.insert(plan_.end(), subset.nodes.begin(), subset.nodes.end());
  }
  return kTfLiteOk;
}

void Network::AddKernel(const TfLiteRegistration& kernel, const Subset& subset, TfLiteDelegate* delegate) {
  auto op = std::make_unique<Op>();
  op->is_kernel = true;
  op->registration = kernel;
  op->registration.builtin_code = kDelegateCode;
  op->node.inputs = NewIntArray(subset.inputs);
  op->node.outputs = NewIntArray(subset.outputs);
  op->node.intermediates = NewIntArray({});
  op->node.temporaries = NewIntArray({});
  op->node.delegate = delegate;
  TfLiteDelegateParams& params = params_.emplace_back(subset, delegate).raw;
  op->node.builtin_data = &params;
  for (const int output : subset.outputs) tensors_[static_cast<size_t>(output)].delegate = delegate;
  if (kernel.init != nullptr)
    op->node.user_data = kernel.init(&context_, reinterpret_cast<const char*>(&params), 0);
  plan_.push_back(static_cast<int>(ops_.size()));
  ops_.push_back(std::move(op));
}

void Network::Prepare() {
  std::vector<std::vector<int>> stated;
  for (const int output : outputs_) {
    const auto dims = Numbers(tensors_[static_cast<size_t>(output)].dims);
    stated.emplace_back(dims.begin(), dims.end());
  }
  for (const int node : plan_) {
    Op& op = *ops_[static_cast<size_t>(node)];
    if (!op.is_kernel) Fail("the delegate left node " + std::to_string(node) + " of the partition");
    if (op.registration.prepare != nullptr && op.registration.prepare(&context_, &op.node) != kTfLiteOk)
      Fail("a kernel of the delegate fails in prepare");
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TfLiteTensor& tensor = tensors_[static_cast<size_t>(outputs_[i])];
    if (tensor.allocation_type == kTfLiteDynamic) Fail("an output has a size that depends on values");
    if (!std::ranges::equal(Numbers(tensor.dims), stated[i]))
      Fail("an output has other dims than in the graph");
  }
  Allocate();
}

void Network::Allocate() {
  memory_.clear();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TfLiteTensor& tensor = tensors_[i];
    const bool own = tensor.dims != nullptr && tensor.bytes > 0 && tensor.allocation_type != kTfLiteMmapRo &&
                     tensor.allocation_type != kTfLiteDynamic && !Contains(inputs_, static_cast<int>(i)) &&
                     !Contains(outputs_, static_cast<int>(i));
    if (!own) continue;
    auto& memory = memory_.emplace_back(new std::byte[tensor.bytes + 2 * kAlignment]());
    void* at = memory.get();
    size_t space = tensor.bytes + 2 * kAlignment;
    tensor.data.data = std::align(kAlignment, tensor.bytes, at, space);
  }
}

// Copies results that are in the delegate's memory.
void Network::FetchResults(const Op& op) {
  for (const int output : Numbers(op.node.outputs)) {
    TfLiteTensor& tensor = tensors_[static_cast<size_t>(output)];
    if (!tensor.data_is_stale || tensor.delegate == nullptr) continue;
    if (tensor.delegate->CopyFromBufferHandle == nullptr ||
        tensor.delegate->CopyFromBufferHandle(&context_, tensor.delegate, tensor.buffer_handle, &tensor) !=
            kTfLiteOk)
      Fail("the delegate cannot copy a result");
    tensor.data_is_stale = false;
  }
}

void Network::Invoke() {
  for (const int node : plan_) {
    Op& op = *ops_[static_cast<size_t>(node)];
    if (op.registration.invoke == nullptr || op.registration.invoke(&context_, &op.node) != kTfLiteOk)
      Fail("a kernel of the delegate fails in invoke");
    FetchResults(op);
  }
}

}  // namespace fusebox::tflite_delegate
