// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/layout/layout.h"
#include "cli/page/page.h"

namespace fusebox::cli::page {
namespace {

// Pixels of the page's fonts; the script cuts what is longer.
constexpr double kLabel = 8.6;
constexpr double kSmall = 6.4;
constexpr double kPadding = 30;
constexpr double kBadge = 22;
constexpr double kLeastWidth = 64;
constexpr double kMostWidth = 290;
constexpr double kTall = 40;
constexpr double kFlat = 26;

double WidthOf(std::string_view label, std::string_view type, bool opens) {
  const double text =
      std::max(static_cast<double>(label.size()) * kLabel, static_cast<double>(type.size()) * kSmall);
  return std::clamp(text + kPadding + (opens ? kBadge : 0), kLeastWidth, kMostWidth);
}

double Rounded(double value) { return std::round(value * 10) / 10; }

std::string LabelOf(const Node& node) {
  return node.is(Op::kCustom) || node.is(Op::kStablehloComposite) ? node.name : std::string(Name(node.op));
}

// Graph and JSON of one view, built together.
class View {
 public:
  explicit View(const Function& function) : function_(function) {}

  int Add(Json node) {
    const bool op = node["kind"] == "op" || node["kind"] == "group";
    const bool opens = node.contains("views");
    const std::string& label = node["label"].get_ref<const std::string&>();
    const std::string& type = node["type"].get_ref<const std::string&>();
    graph_.nodes.push_back({WidthOf(label, type, opens), op ? kTall : kFlat});
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  int AddValue(const char* kind, ValueId id) {
    const Value& value = function_.value(id);
    return Add({{"kind", kind},
                {"value", id},
                {"label", value.name.substr(0, 64)},
                {"type", kind == std::string_view("out") ? "" : ToString(value.type)}});
  }

  void Define(ValueId id, int node) { producers_[id] = node; }
  bool Has(ValueId id) const { return producers_.contains(id); }

  void Read(ValueId id, int node) {
    const auto producer = producers_.find(id);
    if (producer == producers_.end() || producer->second >= node) return;
    if (!joined_.emplace(producer->second, node).second) return;
    graph_.edges.push_back({producer->second, node});
    values_.push_back(id);
  }

  Json Take(Json head) {
    const layout::Layout layout = layout::Lay(graph_);
    for (size_t i = 0; i < nodes_.size(); ++i)
      nodes_[i].update({{"x", Rounded(layout.nodes[i].x)},
                        {"y", Rounded(layout.nodes[i].y)},
                        {"w", Rounded(graph_.nodes[i].width)},
                        {"h", graph_.nodes[i].height}});
    Json edges = Json::array();
    for (size_t i = 0; i < values_.size(); ++i) {
      Json points = Json::array();
      for (const layout::Point& p : layout.routes[i])
        points.insert(points.end(), {Rounded(p.x), Rounded(p.y)});
      edges.push_back({{"from", graph_.edges[i].from},
                       {"to", graph_.edges[i].to},
                       {"value", values_[i]},
                       {"points", std::move(points)}});
    }
    head.update({{"width", Rounded(layout.width)},
                 {"height", Rounded(layout.height)},
                 {"nodes", std::move(nodes_)},
                 {"edges", std::move(edges)}});
    return head;
  }

 private:
  const Function& function_;
  layout::Graph graph_;
  Json nodes_ = Json::array();
  std::vector<ValueId> values_;  // by edge
  std::map<ValueId, int> producers_;
  std::set<std::pair<int, int>> joined_;
};

// The first result that has a type: "f32[1,8]".
std::string TypeOf(const Function& function, const Node& node) {
  for (const ValueId id : node.results)
    if (id != kNoValue) return ToString(function.value(id).type);
  return {};
}

// Returns whether no node computes the value. The nodes that read such a value show it.
bool IsStored(const Value& value) { return value.is_const() || value.is_variable; }

class Views {
 public:
  explicit Views(const Module& module) : module_(module) {
    size_t nodes = 0;
    for (size_t i = 0; i < module.functions.size(); ++i) {
      numbers_[module.functions[i]->name] = i;
      nodes += module.functions[i]->nodes.size();
    }
    grouped_ = nodes > kMostOpenNodes;
  }

  Json Take() {
    for (size_t i = 0; i < module_.functions.size(); ++i) views_.push_back(nullptr);
    for (size_t i = 0; i < module_.functions.size(); ++i) {
      Json view = OfFunction(i);
      views_[i] = std::move(view);
    }
    return std::move(views_);
  }

 private:
  Json Op(const Function& function, size_t index) const {
    const Node& node = *function.nodes[index];
    Json out = {{"kind", "op"}, {"node", index}, {"label", LabelOf(node)}, {"type", TypeOf(function, node)}};
    Json views = Json::array();
    Json names = Json::array();
    for (const std::string& name : References(node)) {
      const auto found = numbers_.find(name);
      if (found == numbers_.end()) continue;
      views.push_back(found->second);
      names.push_back(name);
    }
    if (!views.empty()) out.update({{"views", std::move(views)}, {"names", std::move(names)}});
    return out;
  }

  // A node with its edges.
  void AddOp(const Function& function, size_t index, View& view) const {
    const int at = view.Add(Op(function, index));
    for (const ValueId id : function.nodes[index]->operands)
      if (id != kNoValue) view.Read(id, at);
    for (const ValueId id : function.nodes[index]->results)
      if (id != kNoValue) view.Define(id, at);
  }

  static void AddInput(ValueId id, View& view) {
    if (!view.Has(id)) view.Define(id, view.AddValue("in", id));
  }

  static void AddOutputs(const std::vector<ValueId>& ids, View& view) {
    for (const ValueId id : ids) view.Read(id, view.AddValue("out", id));
  }

  // Returns whether the function is the main function or a signature. Other functions hide inputs that
  // nothing reads, because loops pass on all that they carry.
  bool IsEntry(const Function& function) const {
    return &function == module_.functions[0].get() ||
           std::ranges::find(module_.signatures, function.name, &Signature::function) !=
               module_.signatures.end();
  }

  Json OfFunction(size_t number) {
    const Function& function = *module_.functions[number];
    View view(function);
    for (const ValueId id : function.inputs)
      if (IsEntry(function) || !UsesOf(number).readers(id).empty()) AddInput(id, view);
    for (const ValueId id : function.outputs)
      if (function.value(id).is_const() && !view.Has(id)) view.Define(id, view.AddValue("const", id));
    const std::vector<Group> groups = grouped_ ? GroupsOf(function) : std::vector<Group>();
    if (groups.size() > 1)
      for (const Group& group : groups) AddGroup(number, group, view);
    else
      for (size_t i = 0; i < function.nodes.size(); ++i) AddOp(function, i, view);
    AddOutputs(function.outputs, view);
    return view.Take({{"title", function.name}, {"function", number}, {"group", false}});
  }

  void AddGroup(size_t number, const Group& group, View& view) {
    const Function& function = *module_.functions[number];
    const int at = view.Add({{"kind", "group"},
                             {"begin", group.begin},
                             {"end", group.end},
                             {"label", group.title},
                             {"type", fmt::format("{} nodes", group.end - group.begin)},
                             {"views", Json::array({views_.size()})},
                             {"names", Json::array({group.title})}});
    for (size_t i = group.begin; i < group.end; ++i) {
      for (const ValueId id : function.nodes[i]->operands)
        if (id != kNoValue) view.Read(id, at);
      for (const ValueId id : function.nodes[i]->results)
        if (id != kNoValue) view.Define(id, at);
    }
    views_.push_back(OfGroup(number, group));
  }

  // Shows values that the nodes read from outside as inputs, and values of theirs that other nodes read as
  // outputs.
  Json OfGroup(size_t number, const Group& group) const {
    const Function& function = *module_.functions[number];
    std::set<ValueId> inside;
    for (size_t i = group.begin; i < group.end; ++i)
      inside.insert(function.nodes[i]->results.begin(), function.nodes[i]->results.end());
    View view(function);
    for (size_t i = group.begin; i < group.end; ++i)
      for (const ValueId id : function.nodes[i]->operands)
        if (id != kNoValue && !inside.contains(id) && !IsStored(function.value(id))) AddInput(id, view);
    for (size_t i = group.begin; i < group.end; ++i) AddOp(function, i, view);
    AddOutputs(ReadOutside(number, group), view);
    return view.Take({{"title", group.title}, {"function", number}, {"group", true}});
  }

  std::vector<ValueId> ReadOutside(size_t number, const Group& group) const {
    const Function& function = *module_.functions[number];
    const Uses& uses = UsesOf(number);
    std::vector<ValueId> out;
    for (size_t i = group.begin; i < group.end; ++i)
      for (const ValueId id : function.nodes[i]->results) {
        if (id == kNoValue) continue;
        const auto outside = [&](const Uses::Reader& reader) {
          return reader.node == nullptr || Index(number, reader.node) >= group.end;
        };
        if (std::ranges::any_of(uses.readers(id), outside)) out.push_back(id);
      }
    return out;
  }

  const Uses& UsesOf(size_t number) const {
    if (const auto found = uses_.find(number); found != uses_.end()) return found->second;
    return uses_.emplace(number, Uses(*module_.functions[number])).first->second;
  }

  size_t Index(size_t number, const Node* node) const {
    auto& indices = indices_[number];
    if (indices.empty())
      for (size_t i = 0; i < module_.functions[number]->nodes.size(); ++i)
        indices[module_.functions[number]->nodes[i].get()] = i;
    return indices.at(node);
  }

  const Module& module_;
  std::map<std::string, size_t> numbers_;
  bool grouped_ = false;
  Json views_ = Json::array();
  mutable std::map<size_t, Uses> uses_;
  mutable std::map<size_t, std::map<const Node*, size_t>> indices_;
};

}  // namespace

Json ViewsJson(const Module& module) { return Views(module).Take(); }

}  // namespace fusebox::cli::page
