// SPDX-License-Identifier: Apache-2.0
// TensorArrays as tensor lists. A TensorArray's state is a resource that each op reads through the handle; a
// float, the flow, orders the ops. The list takes the place of the flow.
#include <algorithm>

#include "converter/import/saved_model/v1/graph.h"

namespace fusebox::saved_model::v1 {
namespace {

// Ops of TensorArrays with handles that are resources; older versions have other operands.
constexpr std::string_view kArray = "TensorArrayV3";

const tf::AttrValue* FindAttr(const tf::NodeDef& def, const char* name) {
  const auto it = def.attr().find(name);
  return it == def.attr().end() ? nullptr : &it->second;
}

tf::DataType TypeAttr(const tf::NodeDef& def, const char* name) {
  const tf::AttrValue* attr = FindAttr(def, name);
  return attr ? attr->type() : tf::DT_INVALID;
}

class Lowering {
 public:
  Lowering(Context& context, Graph& g) : context_(context), g_(g) {}

  Status Run() {
    const auto nodes = static_cast<int>(g_.nodes.size());
    std::vector<Port> flows;
    for (int n = 0; n < nodes; ++n)
      if (g_.Is(n, kArray)) flows.push_back({n, 1});
      else if (ReturnsFlow(n)) flows.push_back({n, 0});
    if (flows.empty()) return {};
    SetListTypes(std::move(flows));
    for (int n = 0; n < nodes; ++n) {
      if (!g_[n].def || !g_[n].def->op().starts_with("TensorArray")) continue;
      FUSEBOX_TRY(Lower(n).At([&] { return "node " + g_.NameOf(n) + " (" + g_[n].def->op() + ")"; }));
    }
    Replace(g_, by_);
    Prune(g_, true);
    return {};
  }

 private:
  bool ReturnsFlow(int n) const {
    return g_.Is(n, "TensorArrayWriteV3") || g_.Is(n, "TensorArrayScatterV3") ||
           g_.Is(n, "TensorArraySplitV3");
  }

  // Changes ops that forward a flow: they forward a list now.
  void SetListTypes(std::vector<Port> pending) {
    std::map<int, std::vector<std::pair<int, size_t>>> readers;
    for (int n = 0; n < static_cast<int>(g_.nodes.size()); ++n)
      for (size_t i = 0; i < g_[n].inputs.size(); ++i) readers[g_[n].inputs[i].node].emplace_back(n, i);
    std::set<int> seen;
    while (!pending.empty()) {
      const Port flow = pending.back();
      pending.pop_back();
      for (const auto& [n, i] : readers[flow.node]) {
        const Vertex& reader = g_[n];
        if (reader.inputs[i] != flow || !reader.def) continue;
        const bool forwards =
            g_.Is(n, "Identity") || (reader.kind != Kind::kOther && i == 0) || reader.kind == Kind::kMerge;
        if (!forwards || !seen.insert(n).second) continue;
        tf::NodeDef& changed = context_.made.emplace_back(*reader.def);
        (*changed.mutable_attr())["T"].set_type(tf::DT_VARIANT);
        changed.mutable_attr()->erase("_output_shapes");
        g_[n].def = &changed;
        pending.push_back({n, 0});
        if (reader.kind == Kind::kSwitch) pending.push_back({n, 1});
      }
    }
  }

  Status Lower(int n) {
    const std::string& op = g_[n].def->op();
    const std::vector<Port> in = g_[n].inputs;
    const auto arity = [&](size_t count) -> Status {
      if (in.size() == count) return {};
      return Invalid("it has " + std::to_string(in.size()) + " operands, expected " + std::to_string(count));
    };
    if (op == kArray) {
      FUSEBOX_TRY(arity(1));
      by_[{n, 1}] = List(n, "TensorListReserve", {ElementShape(n), in[0]}, TypeAttr(*g_[n].def, "dtype"));
    } else if (op == "TensorArrayReadV3") {
      FUSEBOX_TRY(arity(3));
      by_[{n, 0}] = List(n, "TensorListGetItem", {in[2], in[1], ElementShape(ArrayOf(in[0]))},
                         TypeAttr(*g_[n].def, "dtype"));
      if (const tf::TensorShape* shape = KnownShape(ArrayOf(in[0])))
        *(*context_.made.back().mutable_attr())["_output_shapes"].mutable_list()->add_shape() = *shape;
    } else if (op == "TensorArrayWriteV3") {
      FUSEBOX_TRY(arity(4));
      by_[{n, 0}] = List(n, "TensorListSetItem", {in[3], in[1], in[2]}, TypeAttr(*g_[n].def, "T"));
      const tf::NodeDef* const array = g_[ArrayOf(in[0])].def;
      const tf::AttrValue* grows = array ? FindAttr(*array, "dynamic_size") : nullptr;
      if (grows && grows->b())
        (*context_.made.back().mutable_attr())["resize_if_index_out_of_bounds"].set_b(true);
    } else if (op == "TensorArrayScatterV3") {
      FUSEBOX_TRY(arity(4));
      if (!CountsFrom0(in[1]))
        return Unsupported("it writes at computed indices; only whole arrays (0, 1, 2, ...) are supported");
      by_[{n, 0}] =
          List(n, "TensorListFromTensor", {in[2], ElementShape(ArrayOf(in[0]))}, TypeAttr(*g_[n].def, "T"));
    } else if (op == "TensorArrayGatherV3") {
      FUSEBOX_TRY(arity(3));
      Gather(n, in);
    } else if (op == "TensorArraySizeV3") {
      FUSEBOX_TRY(arity(2));
      by_[{n, 0}] = {g_.Add(context_.Make("TensorListLength", g_.NameOf(n)), {in[1]}), 0};
    } else if (op == "TensorArrayConcatV3") {
      FUSEBOX_TRY(arity(2));
      Concat(n, in);
    }
    return {};  // what is left is reported by the importer, unless nothing reads it (TensorArrayCloseV3)
  }

  void Gather(int n, const std::vector<Port>& in) {
    const tf::DataType type = TypeAttr(*g_[n].def, "dtype");
    Port shape = ElementShape(n);
    if (IsUnknown(shape)) shape = ElementShape(ArrayOf(in[0]));
    const bool whole = CountsTo(in[1], in[0]);
    by_[{n, 0}] = whole ? List(n, "TensorListStack", {in[2], shape}, type)
                        : List(n, "TensorListGather", {in[2], in[1], shape}, type);
  }

  void Concat(int n, const std::vector<Port>& in) {
    const tf::AttrValue* rest = FindAttr(*g_[n].def, "element_shape_except0");
    tf::TensorShape shape;
    shape.set_unknown_rank(!rest || rest->shape().unknown_rank());
    if (!shape.unknown_rank()) {
      shape.add_dim()->set_size(-1);
      for (const auto& dim : rest->shape().dim()) *shape.add_dim() = dim;
    }
    tf::NodeDef& sizes = context_.Make("Const", g_.NameOf(n) + "/leading_dims");
    (*sizes.mutable_attr())["dtype"].set_type(tf::DT_INT64);
    tf::Tensor& empty = *(*sizes.mutable_attr())["value"].mutable_tensor();
    empty.set_dtype(tf::DT_INT64);
    empty.mutable_tensor_shape()->add_dim()->set_size(0);
    const Port leading{g_.Add(sizes, {}), 0};
    const Port list =
        List(n, "TensorListConcatV2", {in[1], ShapeConst(n, shape), leading}, TypeAttr(*g_[n].def, "dtype"));
    by_[{n, 0}] = list;
    by_[{n, 1}] = {list.node, 1};
  }

  Port List(int n, const char* op, std::vector<Port> inputs, tf::DataType element) {
    tf::NodeDef& def = context_.Make(op, g_.NameOf(n));
    (*def.mutable_attr())["element_dtype"].set_type(element);
    const int made = g_.Add(def, std::move(inputs));
    g_[made].controls = g_[n].controls;
    return {made, 0};
  }

  // The TensorArray behind a handle, or the node at which its trace ends.
  int ArrayOf(Port handle) const {
    for (size_t hop = 0; hop < g_.nodes.size(); ++hop) {
      const Vertex& node = g_[handle.node];
      if (!node.def || node.inputs.empty() || g_.Is(handle.node, kArray)) break;
      if (node.kind == Kind::kOther && node.def->op() != "Identity") break;
      handle = node.inputs[0];
    }
    return handle.node;
  }

  // Returns null for an unknown rank.
  const tf::TensorShape* KnownShape(int n) const {
    const tf::AttrValue* shape = g_[n].def ? FindAttr(*g_[n].def, "element_shape") : nullptr;
    return shape && !shape->shape().unknown_rank() ? &shape->shape() : nullptr;
  }

  Port ElementShape(int n) {
    tf::TensorShape unknown;
    unknown.set_unknown_rank(true);
    const tf::TensorShape* shape = KnownShape(n);
    return ShapeConst(n, shape ? *shape : unknown);
  }

  // In the form of list ops: -1 for an unknown dimension, a scalar -1 for an unknown rank.
  Port ShapeConst(int n, const tf::TensorShape& shape) {
    tf::NodeDef& def = context_.Make("Const", g_.NameOf(n) + "/element_shape");
    (*def.mutable_attr())["dtype"].set_type(tf::DT_INT32);
    tf::Tensor& value = *(*def.mutable_attr())["value"].mutable_tensor();
    value.set_dtype(tf::DT_INT32);
    value.mutable_tensor_shape();
    if (shape.unknown_rank()) {
      value.add_int_val(-1);
    } else {
      value.mutable_tensor_shape()->add_dim()->set_size(shape.dim_size());
      for (const auto& dim : shape.dim()) value.add_int_val(static_cast<int32_t>(dim.size()));
    }
    return {g_.Add(def, {}), 0};
  }

  bool IsUnknown(Port shape) const { return ConstantOf(g_, shape)->tensor_shape().dim_size() == 0; }

  bool IsNumber(Port port, int64_t wanted) const {
    const tf::Tensor* tensor = ConstantOf(g_, port);
    if (!tensor || tensor->tensor_shape().dim_size() > 0) return false;
    const auto values = Ints(*tensor);
    return values && *values == std::vector<int64_t>{wanted};
  }

  static std::optional<std::vector<int64_t>> Ints(const tf::Tensor& tensor) {
    const auto value = ToTensor(tensor);
    if (!value) return std::nullopt;
    if (value->type.dtype == DType::kI64) {
      const auto data = value->data.As<int64_t>();
      return std::vector<int64_t>(data.begin(), data.end());
    }
    if (value->type.dtype != DType::kI32) return std::nullopt;
    const auto data = value->data.As<int32_t>();
    return std::vector<int64_t>(data.begin(), data.end());
  }

  // 0, 1, 2, ...: the indices of a whole array.
  bool CountsFrom0(Port indices) const {
    if (const tf::Tensor* tensor = ConstantOf(g_, indices)) {
      const auto values = Ints(*tensor);
      for (size_t i = 0; values && i < values->size(); ++i)
        if ((*values)[i] != static_cast<int64_t>(i)) return false;
      return values.has_value();
    }
    const int range = Origin(g_, indices).node;
    return g_.Is(range, "Range") && g_[range].inputs.size() == 3 && IsNumber(g_[range].inputs[0], 0) &&
           IsNumber(g_[range].inputs[2], 1);
  }

  // All indices of this array.
  bool CountsTo(Port indices, Port handle) const {
    if (!CountsFrom0(indices)) return false;
    const int array = ArrayOf(handle);
    const int range = Origin(g_, indices).node;
    if (!g_.Is(array, kArray) || g_[array].inputs.size() != 1) return false;
    const Port size = Origin(g_, g_[array].inputs[0]);
    if (const tf::Tensor* tensor = ConstantOf(g_, indices))
      return IsNumber(size,
                      tensor->tensor_shape().dim_size() == 1 ? tensor->tensor_shape().dim(0).size() : -1);
    const Port limit = Origin(g_, g_[range].inputs[1]);
    if (limit == size) return true;
    return g_.Is(limit.node, "TensorArraySizeV3") && g_[limit.node].inputs.size() == 2 &&
           ArrayOf(g_[limit.node].inputs[0]) == array;
  }

  Context& context_;
  Graph& g_;
  std::map<Port, Port> by_;
};

}  // namespace

Status LowerArrays(Context& context, Graph& g) { return Lowering(context, g).Run(); }

}  // namespace fusebox::saved_model::v1
