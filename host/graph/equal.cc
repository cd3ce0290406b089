// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "host/graph/graph.h"
#include "host/graph/versions.h"

namespace fusebox {
namespace {

// Compares two modules from main and the signatures on. Functions and values are matched in order of visit.
class Comparison {
 public:
  Comparison(const Module& left, const Module& right) : left_(left), right_(right) {}

  Status Run() {
    if (left_.functions.size() != right_.functions.size()) {
      return Differ("number of functions", std::to_string(left_.functions.size()),
                    std::to_string(right_.functions.size()));
    }
    FUSEBOX_TRY(Descriptions());
    if (!left_.functions.empty()) FUSEBOX_TRY(Meet(left_.functions[0]->name, right_.functions[0]->name));
    FUSEBOX_TRY(Signatures());
    FUSEBOX_TRY(Drain());
    // Unreferenced functions, in order.
    for (size_t i = 0; i < left_.functions.size(); ++i) {
      if (!met_.contains(left_.functions[i]->name))
        FUSEBOX_TRY(Meet(left_.functions[i]->name, right_.functions[i]->name));
      FUSEBOX_TRY(Drain());
    }
    return {};
  }

 private:
  static Status Differ(const std::string& what, const std::string& a, const std::string& b) {
    return Invalid(what + ": " + a + " and " + b);
  }
  template <class T>
  static Status Same(const char* what, const T& a, const T& b) {
    if (a == b) return {};
    if constexpr (std::is_same_v<T, std::string>) return Differ(what, "\"" + a + "\"", "\"" + b + "\"");
    if constexpr (requires { ToString(a); }) return Differ(what, ToString(a), ToString(b));
    if constexpr (std::is_integral_v<T>) return Differ(what, std::to_string(a), std::to_string(b));
    return Invalid(std::string(what) + " differ");
  }

  Status Descriptions() const {
    FUSEBOX_TRY(Same("description", left_.description, right_.description));
    const Tensor a{{}, left_.appended};
    const Tensor b{{}, right_.appended};
    FUSEBOX_TRY(Same("appended zips", a == b, true));
    FUSEBOX_TRY(Same("number of metadata entries", left_.metadata.size(), right_.metadata.size()));
    for (size_t i = 0; i < left_.metadata.size(); ++i) {
      FUSEBOX_TRY(Same("metadata name", left_.metadata[i].name, right_.metadata[i].name));
      const Tensor x{{}, left_.metadata[i].data};
      const Tensor y{{}, right_.metadata[i].data};
      if (!(x == y)) return Invalid("metadata " + left_.metadata[i].name + " differs");
    }
    return {};
  }

  Status Signatures() {
    FUSEBOX_TRY(Same("number of signatures", left_.signatures.size(), right_.signatures.size()));
    for (const Signature& a : left_.signatures) {
      const auto b = std::ranges::find(right_.signatures, a.key, &Signature::key);
      const std::string place = "signature " + a.key;
      if (b == right_.signatures.end()) return Invalid(place + ": only on one side");
      FUSEBOX_TRY(Same("input names", a.input_names, b->input_names).At(place));
      FUSEBOX_TRY(Same("output names", a.output_names, b->output_names).At(place));
      FUSEBOX_TRY(Meet(a.function, b->function).At(place));
    }
    return {};
  }

  // Matches functions in the same position on both sides.
  Status Meet(const std::string& left, const std::string& right) {
    const auto [known, added] = met_.emplace(left, right);
    if (!added) return known->second == right ? Status() : Differ("function", known->second, right);
    const Function* a = left_.Find(left);
    const Function* b = right_.Find(right);
    if (a == nullptr || b == nullptr)
      return Same("existence of function " + left, a != nullptr, b != nullptr);
    open_.emplace_back(a, b);
    return {};
  }
  static Status Same(const std::string& what, bool a, bool b) { return Same(what.c_str(), a, b); }

  Status Drain() {
    while (!open_.empty()) {
      const auto [a, b] = open_.back();
      open_.pop_back();
      FUSEBOX_TRY(Functions(*a, *b).At("function " + a->name));
    }
    return {};
  }

  Status Functions(const Function& a, const Function& b) {
    values_.clear();
    FUSEBOX_TRY(Ids("inputs", a, a.inputs, b, b.inputs, true));
    FUSEBOX_TRY(Same("number of nodes", a.nodes.size(), b.nodes.size()));
    for (size_t i = 0; i < a.nodes.size(); ++i) {
      FUSEBOX_TRY(Nodes(a, *a.nodes[i], b, *b.nodes[i]).At([&] { return Describe(*a.nodes[i], i); }));
    }
    return Ids("outputs", a, a.outputs, b, b.outputs);
  }

  Status Nodes(const Function& fa, const Node& a, const Function& fb, const Node& b) {
    FUSEBOX_TRY(Same("op", std::string(Name(a.op)), std::string(Name(b.op))));
    FUSEBOX_TRY(Same("name", a.name, b.name));
    const bool composite = a.is(Op::kStablehloComposite);
    const auto version = [&](const Function& f, const Node& n) {
      return n.version != 0 || composite ? n.version : LowestVersion(f, n);
    };
    FUSEBOX_TRY(Same("version", version(fa, a), version(fb, b)));
    FUSEBOX_TRY(Same("uninterpreted parts", a.extra, b.extra));
    FUSEBOX_TRY(Same("raw options", a.raw_options, b.raw_options));
    FUSEBOX_TRY(Attributes(a.attrs, b.attrs));
    if (a.body.empty() != b.body.empty()) return Differ("body", a.body, b.body);
    if (!a.body.empty()) FUSEBOX_TRY(Meet(a.body, b.body));
    FUSEBOX_TRY(Ids("operands", fa, a.operands, fb, b.operands));
    FUSEBOX_TRY(Same("number of results", a.results.size(), b.results.size()));
    const size_t proper = ProperResultCount(a);
    for (size_t i = 0; i < a.results.size(); ++i) {
      // A final state shares tensor and name with the operand.
      FUSEBOX_TRY(Value("result " + std::to_string(i), fa, a.results[i], fb, b.results[i], i < proper, true));
    }
    return Ids("intermediates", fa, a.intermediates, fb, b.intermediates);
  }

  Status Attributes(const Attrs& a, const Attrs& b) {
    for (const auto& [name, value] : a) {
      const AttrValue* other = b.Find(name);
      if (other == nullptr) return Invalid("attribute " + name + ": only on one side");
      FUSEBOX_TRY(Attribute(value, *other).At("attribute " + name));
    }
    for (const auto& [name, value] : b) {
      if (a.Find(name) == nullptr) return Invalid("attribute " + name + ": only on one side");
    }
    return {};
  }

  // Equal, with NaNs in the same positions.
  static bool SameReals(const AttrValue& a, const AttrValue& b) {
    const auto same = [](double x, double y) { return x == y || (x != x && y != y); };
    if (const auto* one = std::get_if<double>(&a)) return same(*one, std::get<double>(b));
    const auto* many = std::get_if<std::vector<double>>(&a);
    return many && std::ranges::equal(*many, std::get<std::vector<double>>(b), same);
  }

  Status Attribute(const AttrValue& a, const AttrValue& b) {
    if (a.index() != b.index()) return Differ("kinds", ToString(a), ToString(b));
    if (const auto* function = std::get_if<FunctionRef>(&a))
      return Meet(function->name, std::get<FunctionRef>(b).name);
    if (const auto* map = std::get_if<std::shared_ptr<const Attrs>>(&a)) {
      const auto& other = std::get<std::shared_ptr<const Attrs>>(b);
      static const Attrs& none = *new Attrs;
      return Attributes(*map == nullptr ? none : **map, other == nullptr ? none : *other);
    }
    return a == b || SameReals(a, b) ? Status() : Differ("values", ToString(a), ToString(b));
  }

  Status Ids(const std::string& what, const Function& fa, std::span<const ValueId> a, const Function& fb,
             std::span<const ValueId> b, bool defined = false) {
    FUSEBOX_TRY(Same(("number of " + what).c_str(), a.size(), b.size()));
    for (size_t i = 0; i < a.size(); ++i)
      FUSEBOX_TRY(Value(what + " " + std::to_string(i), fa, a[i], fb, b[i], true, defined));
    return {};
  }

  Status Value(const std::string& what, const Function& fa, ValueId a, const Function& fb, ValueId b,
               bool names, bool defined) {
    if (a == kNoValue || b == kNoValue)
      return a == b ? Status() : Status(Invalid(what + ": absent on one side"));
    const auto [known, added] = values_.emplace(a, b);
    if (!added) return known->second == b ? Status() : Status(Invalid(what + ": refers to different values"));
    const fusebox::Value& x = fa.value(a);
    const fusebox::Value& y = fb.value(b);
    if (names) FUSEBOX_TRY(Same("name", x.name, y.name).At(what));
    // An operand without definition so far: whether it is session state matters.
    if (names && !defined) FUSEBOX_TRY(Same("variable tensor", x.is_variable, y.is_variable).At(what));
    if (!(Tensor{x.type, x.initial} == Tensor{y.type, y.initial}))
      return Invalid(what + ": initial values differ");
    FUSEBOX_TRY(Same("type", x.type, y.type).At(what));
    static const Quant& none = *new Quant;
    FUSEBOX_TRY(Same("quantization", x.quant ? *x.quant : none, y.quant ? *y.quant : none).At(what));
    FUSEBOX_TRY(Same("constness", x.is_const(), y.is_const()).At(what));
    if (!(Tensor{x.type, x.data} == Tensor{y.type, y.data}))
      return Invalid(what + ": constants differ in content");
    x.data.Release();
    y.data.Release();
    return Same("uninterpreted parts", x.extra, y.extra).At(what);
  }

  const Module &left_, &right_;
  std::map<std::string, std::string> met_;
  std::vector<std::pair<const Function*, const Function*>> open_;
  std::map<ValueId, ValueId> values_;  // of the current function
};

}  // namespace

bool Equal(const Module& left, const Module& right, std::string* why) {
  const Status status = Comparison(left, right).Run();
  if (!status && why != nullptr) *why = status.error().message;
  return status.has_value();
}

}  // namespace fusebox
