// SPDX-License-Identifier: Apache-2.0
// Ops without a possible translation, and what to do instead.
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

struct Family {
  std::string_view prefix;  // of the op's name
  std::string_view why;
};

constexpr std::string_view kLoops =
    "control flow of TensorFlow 1; export the model again with functional control flow "
    "(enable_control_flow_v2)";
constexpr std::string_view kArrays =
    "a TensorArray of TensorFlow 1 in a form that is not supported; export the model again with functional "
    "control flow (enable_control_flow_v2), whose loops use tensor lists";
constexpr std::string_view kParsing =
    "it parses serialized examples; convert a signature with tensor inputs, or remove the parsing before "
    "exporting";
constexpr std::string_view kPython = "it calls Python";
constexpr std::string_view kPipeline = "it reads an input pipeline; export a function of tensors";
constexpr std::string_view kRagged =
    "TFLite has no ragged tensors, and no plugin here has a kernel for this op (fusebox.strings has those of "
    "text models); use padded inputs";
constexpr std::string_view kSparse = "TFLite has no sparse tensors; use dense inputs";
constexpr std::string_view kStrings =
    "no plugin here has a kernel for this string op (fusebox.strings has the usual ones); preprocess text "
    "outside of the model";
constexpr std::string_view kFiles = "it reads or writes files";

constexpr std::string_view kImages =
    "it encodes or decodes image or audio files; convert a signature with decoded inputs, or name its "
    "results as the inputs of a frozen graph (--inputs)";
constexpr std::string_view kSeeded =
    "its numbers are specific to TensorFlow's seeded generator; generate them outside and pass them in";

constexpr Family kFamilies[] = {
    {"XlaCallModule", "it holds compiled StableHLO (JAX exports); export from the TensorFlow backend"},
    {"Placeholder", "it is not an input of the signature"},
    {"Switch", kLoops},
    {"RefSwitch", kLoops},
    {"Merge", kLoops},
    {"RefMerge", kLoops},
    {"Enter", kLoops},
    {"Exit", kLoops},
    {"NextIteration", kLoops},
    {"LoopCond", kLoops},
    {"TensorArray", kArrays},
    {"ParseExample", kParsing},
    {"ParseSingleExample", kParsing},
    {"ParseSequenceExample", kParsing},
    {"DecodeProto", kParsing},
    {"PyFunc", kPython},
    {"EagerPyFunc", kPython},
    {"Iterator", kPipeline},
    {"Ragged", kRagged},
    {"Sparse", kSparse},
    {"SerializeSparse", kSparse},
    {"DeserializeSparse", kSparse},
    {"String", kStrings},
    {"Regex", kStrings},
    {"StaticRegex", kStrings},
    {"Unicode", kStrings},
    {"AsStr", kStrings},
    {"Subst", kStrings},
    {"ReduceJ", kStrings},
    {"DecodeBase64", kStrings},
    {"DecodeRaw", kStrings},
    {"DecodeJpeg", kImages},
    {"DecodePng", kImages},
    {"DecodeImage", kImages},
    {"DecodeBmp", kImages},
    {"DecodeGif", kImages},
    {"DecodeAndCropJpeg", kImages},
    {"DecodeWav", kImages},
    {"EncodeJpeg", kImages},
    {"EncodePng", kImages},
    {"EncodeWav", kImages},
    {"StatelessRandom", kSeeded},
    {"StatelessMultinomial", kSeeded},
    {"StatelessTruncated", kSeeded},
    {"CudnnRNN", "it is supported only with constant parameters and sequences of equal length"},
    {"BlockLSTM", "it is supported only with constant weights, without peepholes, clipping and lengths"},
    {"LookupTableInsert", "it writes to a lookup table; TFLite's are filled once, before the model runs"},
    {"LookupTableRemove", "it writes to a lookup table; TFLite's are filled once, before the model runs"},
    {"SimpleML", "it runs a decision forest of TensorFlow Decision Forests"},
    {"CTC",
     "it decodes sequences or scores them; name the tensor that it reads as the output (--outputs) and "
     "decode outside of the model"},
    {"TPU", "it runs on a TPU; export the model for serving without TPUs"},
    {"ReadFile", kFiles},
    {"WriteFile", kFiles},
    {"SaveV2", kFiles},
    {"RestoreV2", kFiles},
};

}  // namespace

bool IsTraining(std::string_view op) {
  if (op == "StopGradient" || op == "PreventGradient") return false;
  const bool applies = op.starts_with("Apply") || op.starts_with("ResourceApply") ||
                       op.starts_with("SparseApply") || op.starts_with("ResourceSparseApply");
  return applies || op.find("Grad") != std::string_view::npos || op.ends_with("BackpropFilter");
}

std::string WhyUntranslatable(std::string_view op) {
  if (IsTraining(op)) return "it trains the model; name the outputs of inference (--outputs)";
  for (const Family& family : kFamilies)
    if (op.starts_with(family.prefix)) return std::string(family.why);
  return "there is no translation of this op";
}

}  // namespace fusebox::converter
