// SPDX-License-Identifier: Apache-2.0
// The results of a node: from the op's definition in the file, or from tables.
#include <algorithm>

#include "converter/import/saved_model/function_import.h"
#include "converter/import/tables/lookup.h"
#include "converter/import/tables/translate.h"

namespace fusebox::saved_model {
namespace {

// Ops whose definition may be missing: frozen graphs define none, and SavedModels may define only the ops of
// their main graph. All ops with several outputs that have a translation or a kernel in `plugins` are here,
// and also the ops of `plugins` with one output, because no other table has them.
struct KnownOp {
  std::string_view op, outputs;  // names with commas
  std::string_view types;        // with commas, the last repeats: type attributes, or a type of kFixedTypes;
                                 // empty: from `many`, or i32
  std::string_view many;         // count or type-list attribute
};
constexpr std::pair<std::string_view, tf::DataType> kFixedTypes[] = {{"bool", tf::DT_BOOL},
                                                                     {"float", tf::DT_FLOAT},
                                                                     {"int32", tf::DT_INT32},
                                                                     {"int64", tf::DT_INT64},
                                                                     {"string", tf::DT_STRING}};
constexpr KnownOp kKnownOps[] = {
    {"Switch", "output_false,output_true", "T", ""},
    {"RefSwitch", "output_false,output_true", "T", ""},
    {"Merge", "output,value_index", "T,", ""},
    {"RefMerge", "output,value_index", "T,", ""},
    {"TensorArrayV3", "handle,flow", "dtype", ""},
    {"TensorArrayConcatV3", "value,lengths", "dtype", ""},
    {"LSTMBlockCell", "i,cs,f,o,ci,co,h", "T", ""},
    {"BlockLSTM", "i,cs,f,o,ci,co,h", "T", ""},
    {"BlockLSTMV2", "i,cs,f,o,ci,co,h", "T", ""},
    {"GRUBlockCell", "r,u,c,h", "T", ""},
    {"PartitionedCall", "output", "", "Tout"},
    {"StatefulPartitionedCall", "output", "", "Tout"},
    {"While", "output", "", "T"},
    {"StatelessWhile", "output", "", "T"},
    {"For", "output", "", "T"},
    {"If", "output", "", "Tout"},
    {"StatelessIf", "output", "", "Tout"},
    {"Case", "output", "", "Tout"},
    {"StatelessCase", "output", "", "Tout"},
    {"IdentityN", "output", "", "T"},
    {"Split", "output", "T", "num_split"},
    {"SplitV", "output", "T", "num_split"},
    {"Unpack", "output", "T", "num"},
    {"TopKV2", "values,indices", "T,index_type", ""},
    {"Unique", "y,idx", "T,out_idx", ""},
    {"UniqueV2", "y,idx", "T,out_idx", ""},
    {"UniqueWithCounts", "y,idx,count", "T,out_idx", ""},
    {"UniqueWithCountsV2", "y,idx,count", "T,out_idx", ""},
    {"LookupTableExportV2", "keys,values", "Tkeys,Tvalues", ""},
    {"LookupTableExport", "keys,values", "Tkeys,Tvalues", ""},
    {"DynamicPartition", "outputs", "T", "num_partitions"},
    {"TopK", "values,indices", "T,", ""},
    {"TensorListConcatV2", "tensor,lengths", "element_dtype,", ""},
    {"NonMaxSuppressionV5", "selected_indices,selected_scores,valid_outputs", "out_idx,T,out_idx", ""},
    {"NonMaxSuppressionV4", "selected_indices,valid_outputs", "", ""},
    {"CombinedNonMaxSuppression", "nmsed_boxes,nmsed_scores,nmsed_classes,valid_detections", "T,T,T,out_idx",
     ""},
    {"CudnnRNN", "output,output_h,output_c,reserve_space", "T", ""},
    {"CudnnRNNV2", "output,output_h,output_c,reserve_space,host_reserved", "T", ""},
    {"CudnnRNNV3", "output,output_h,output_c,reserve_space,host_reserved", "T", ""},
    {"FusedBatchNorm", "y,batch_mean,batch_variance,reserve_space_1,reserve_space_2", "T", ""},
    {"FusedBatchNormV2", "y,batch_mean,batch_variance,reserve_space_1,reserve_space_2", "T,U", ""},
    {"FusedBatchNormV3", "y,batch_mean,batch_variance,reserve_space_1,reserve_space_2,reserve_space_3", "T,U",
     ""},
    {"DecodeWav", "audio,sample_rate", "float,int32", ""},
    {"AudioSpectrogram", "spectrogram", "float", ""},
    {"Mfcc", "output", "float", ""},
    {"StringSplit", "indices,values,shape", "int64,string,int64", ""},
    {"StringSplitV2", "indices,values,shape", "int64,string,int64", ""},
    {"StringNGrams", "ngrams,ngrams_splits", "string,Tsplits", ""},
    {"UnicodeDecode", "row_splits,char_values", "Tsplits,int32", ""},
    {"UnicodeDecodeWithOffsets", "row_splits,char_values,char_to_byte_starts", "Tsplits,int32,int64", ""},
    {"UnicodeEncode", "output", "string", ""},
    {"UnicodeTranscode", "output", "string", ""},
    {"StringLower", "output", "string", ""},
    {"StringUpper", "output", "string", ""},
    {"StringStrip", "output", "string", ""},
    {"StringJoin", "output", "string", ""},
    {"StringLength", "output", "int32", ""},
    {"Substr", "output", "string", ""},
    {"NormalizeUTF8", "output", "string", ""},
    {"CaseFoldUTF8", "output", "string", ""},
    {"RegexReplace", "output", "string", ""},
    {"StaticRegexReplace", "output", "string", ""},
    {"RegexFullMatch", "output", "bool", ""},
    {"StaticRegexFullMatch", "output", "bool", ""},
    {"AsString", "output", "string", ""},
    {"StringToNumber", "output", "out_type", ""},
    {"StringToHashBucketFast", "output", "int64", ""},
    {"StringToHashBucketStrong", "output", "int64", ""},
    {"ReduceJoin", "output", "string", ""},
    {"RaggedTensorToTensor", "result", "T", ""},
    {"RaggedBincount", "output", "T", ""},
};
// Attributes that usually hold the element type of a result, in order of preference.
constexpr const char* kTypeAttrs[] = {"DstT", "out_type", "output_type", "element_dtype",
                                      "T",    "dtype",    "Tparams"};

Result<int> Count(const tf::NodeDef& node, const std::string& attr) {
  const auto it = node.attr().find(attr);
  if (it == node.attr().end() || it->second.i() < 0 || it->second.i() > (1 << 20)) {
    return Invalid("attribute " + attr + " is not a number of outputs");
  }
  return static_cast<int>(it->second.i());
}

DType TypeAttr(const tf::NodeDef& node, const std::string& attr) {
  const auto it = node.attr().find(attr);
  return it == node.attr().end() ? DType::kNone : ToDType(it->second.type());
}

// Ops whose result type does not depend on T; `attr` may override it. Files omit attributes with default
// values.
constexpr struct {
  std::string_view op;
  std::string_view attr;
  DType dtype;
} kResultTypes[] = {
    {"Shape", "out_type", DType::kI32},
    {"Size", "out_type", DType::kI32},
    {"Rank", "", DType::kI32},
    {"ArgMax", "output_type", DType::kI64},
    {"ArgMin", "output_type", DType::kI64},
    {"Where", "", DType::kI64},
    {"SearchSorted", "out_type", DType::kI32},
    {"LowerBound", "out_type", DType::kI32},
    {"UpperBound", "out_type", DType::kI32},
    {"Bucketize", "", DType::kI32},
    {"ResizeBilinear", "", DType::kF32},
    {"ResizeBicubic", "", DType::kF32},
    {"Dequantize", "dtype", DType::kF32},
    {"Equal", "", DType::kBool},
    {"NotEqual", "", DType::kBool},
    {"Less", "", DType::kBool},
    {"LessEqual", "", DType::kBool},
    {"Greater", "", DType::kBool},
    {"GreaterEqual", "", DType::kBool},
    {"ApproximateEqual", "", DType::kBool},
    {"IsNan", "", DType::kBool},
    {"IsInf", "", DType::kBool},
    {"IsFinite", "", DType::kBool},
    {"LogicalAnd", "", DType::kBool},
    {"LogicalOr", "", DType::kBool},
    {"LogicalNot", "", DType::kBool},
    {"All", "", DType::kBool},
    {"Any", "", DType::kBool},
    {"Range", "Tidx", DType::kI32},
    {"NonMaxSuppression", "", DType::kI32},
    {"NonMaxSuppressionV2", "", DType::kI32},
    {"NonMaxSuppressionV3", "", DType::kI32},
    {"CropAndResize", "", DType::kF32},
    {"FakeQuantWithMinMaxArgs", "", DType::kF32},
    {"FakeQuantWithMinMaxVars", "", DType::kF32},
    {"FakeQuantWithMinMaxVarsPerChannel", "", DType::kF32},
    {"TensorListLength", "", DType::kI32},
    {"TensorArraySizeV3", "", DType::kI32},
    {"ComplexAbs", "Tout", DType::kF32},
    {"Angle", "Tout", DType::kF32},
    {"Real", "Tout", DType::kF32},
    {"Imag", "Tout", DType::kF32},
    {"IRFFT", "Treal", DType::kF32},
    {"IRFFT2D", "Treal", DType::kF32},
};

// A TensorFlow 1 variable node returns its value.
bool IsHandle(std::string_view op) {
  return op == "VarHandleOp" || op == "VariableV2" || op == "Variable" || converter::IsLookupTable(op);
}

// Removes and returns the first of several comma-separated words.
std::string_view FirstOf(std::string_view& words) {
  const std::string_view first = words.substr(0, words.find(','));
  words.remove_prefix(std::min(first.size() + 1, words.size()));
  return first;
}

DType ResultType(const tf::NodeDef& node) {
  for (const auto& [op, attr, dtype] : kResultTypes) {
    if (op != node.op()) continue;
    const DType said = attr.empty() ? DType::kNone : TypeAttr(node, std::string(attr));
    return said == DType::kNone ? dtype : said;
  }
  return DType::kNone;
}

void Add(NodeOutputs& out, const std::string& name, std::vector<DType> dtypes) {
  out.first[name] = static_cast<int>(out.dtypes.size());
  out.dtypes.insert(out.dtypes.end(), dtypes.begin(), dtypes.end());
}

Result<std::vector<DType>> ListAttr(const tf::NodeDef& node, const std::string& attr) {
  const auto it = node.attr().find(attr);
  if (it == node.attr().end()) return Invalid("attribute " + attr + " is missing");
  std::vector<DType> dtypes;
  for (int t : it->second.list().type()) dtypes.push_back(ToDType(static_cast<tf::DataType>(t)));
  return dtypes;
}

Status AddArg(const tf::NodeDef& node, const tf::OpDef::Arg& arg, NodeOutputs& out) {
  if (!arg.type_list_attr().empty()) {
    FUSEBOX_ASSIGN(auto dtypes, ListAttr(node, arg.type_list_attr()));
    Add(out, arg.name(), std::move(dtypes));
    return {};
  }
  DType dtype = arg.type_attr().empty() ? ToDType(arg.type()) : TypeAttr(node, arg.type_attr());
  // Files omit attributes with default values.
  if (dtype == DType::kNone && (arg.type_attr() == "index_type" || arg.type_attr() == "out_idx"))
    dtype = DType::kI32;
  if (dtype == DType::kNone && arg.type_attr() == "Tsplits") dtype = DType::kI64;
  int count = 1;
  if (!arg.number_attr().empty()) {
    FUSEBOX_ASSIGN(count, Count(node, arg.number_attr()));
  }
  Add(out, arg.name(), std::vector<DType>(static_cast<size_t>(count), dtype));
  return {};
}

Status AddKnown(const tf::NodeDef& node, const KnownOp& known, NodeOutputs& out) {
  std::string_view types = known.types;
  for (std::string_view names = known.outputs; !names.empty();) {
    tf::OpDef::Arg arg;
    arg.set_name(std::string(FirstOf(names)));
    const std::string_view type = types.contains(',') ? FirstOf(types) : types;
    const auto fixed = std::ranges::find(kFixedTypes, type, [](const auto& pair) { return pair.first; });
    if (fixed != std::end(kFixedTypes)) arg.set_type(fixed->second);
    else arg.set_type_attr(std::string(type));
    if (type.empty() && known.many.empty()) arg.set_type(tf::DT_INT32);
    (type.empty() ? *arg.mutable_type_list_attr() : *arg.mutable_number_attr()) = known.many;
    FUSEBOX_TRY(AddArg(node, arg, out));
  }
  return {};
}

}  // namespace

Result<NodeOutputs> OutputsOf(const SavedModel& model, const tf::NodeDef& node) {
  NodeOutputs out;
  const tf::OpDef* def = model.FindOp(node.op());
  if (const tf::FunctionDef* f = def ? nullptr : model.FindFunction(node.op())) def = &f->signature();
  if (def) {
    for (const auto& arg : def->output_arg()) FUSEBOX_TRY(AddArg(node, arg, out));
    if (out.dtypes.empty() && IsHandle(node.op())) return Invalid("its definition has no output");
    return out;
  }
  if (const auto known = std::ranges::find(kKnownOps, node.op(), &KnownOp::op);
      known != std::end(kKnownOps)) {
    FUSEBOX_TRY(AddKnown(node, *known, out));
    return out;
  }
  if (node.op().starts_with("Assign") || node.op() == "NoOp" || node.op() == "Assert") return out;
  out.guessed = !converter::FindTranslation(node.op()) && !IsHandle(node.op());
  // Frozen graphs list the outputs of custom ops here.
  if (auto listed = ListAttr(node, "_output_types"); out.guessed && listed && !listed->empty()) {
    Add(out, "output", std::move(*listed));
    return out;
  }
  DType dtype = ResultType(node);
  for (const char* attr : kTypeAttrs)
    if (dtype == DType::kNone) dtype = TypeAttr(node, attr);
  const bool handle = node.op() == "TensorListReserve" || node.op() == "TensorListSetItem" ||
                      node.op() == "TensorListFromTensor" || node.op() == "EmptyTensorList" ||
                      node.op() == "TensorListPushBack";
  Add(out, "output", {handle ? DType::kVariant : dtype});
  return out;
}

}  // namespace fusebox::saved_model
