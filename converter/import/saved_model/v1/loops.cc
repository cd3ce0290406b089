// SPDX-License-Identifier: Apache-2.0
// Loops: an Enter per loop variable starts a frame; Merge joins what enters with what NextIteration returns;
// Switch sends it to the body, or to Exit when LoopCond is false. A loop becomes a While over its Merges and
// over the values that only enter.
#include <algorithm>

#include "converter/import/saved_model/v1/graph.h"

namespace fusebox::saved_model::v1 {
namespace {

// Frames of all nodes; frame 0 is outside of all loops.
class Frames {
 public:
  explicit Frames(const Graph& g) : g_(g), of_(g.nodes.size(), 0) {}

  Status Find() {
    FUSEBOX_ASSIGN(const std::vector<int> order, Order(g_));
    for (const int n : order) {
      FUSEBOX_ASSIGN(const int around, InputFrame(n));
      int& frame = of_[static_cast<size_t>(n)];
      frame = around;
      if (g_[n].kind == Kind::kEnter) {
        FUSEBOX_ASSIGN(frame, Entered(n, around));
      }
      if (g_[n].kind != Kind::kExit) continue;
      if (around == 0) return Invalid("node " + g_.NameOf(n) + " (Exit) is in no loop");
      frame = frames_[static_cast<size_t>(around)].parent;
    }
    return {};
  }

  int of(int node) const { return of_[static_cast<size_t>(node)]; }
  int count() const { return static_cast<int>(frames_.size()); }
  bool outermost(int frame) const { return frame > 0 && frames_[static_cast<size_t>(frame)].parent == 0; }
  bool Within(int node, int frame) const {
    int at = of(node);
    while (at != 0 && at != frame) at = frames_[static_cast<size_t>(at)].parent;
    return at == frame;
  }

 private:
  struct Frame {
    int parent, depth;
  };

  // The innermost frame of a node's inputs.
  Result<int> InputFrame(int n) const {
    int frame = 0;
    const auto join = [&](int producer) -> Status {
      if (g_[n].kind == Kind::kMerge && g_[producer].kind == Kind::kNextIteration) return {};
      int deep = of(producer);
      int flat = frame;
      if (frames_[static_cast<size_t>(deep)].depth < frames_[static_cast<size_t>(flat)].depth)
        std::swap(deep, flat);
      frame = deep;
      while (deep != flat && deep != 0) deep = frames_[static_cast<size_t>(deep)].parent;
      if (deep == flat) return {};
      return Invalid("node " + g_.NameOf(n) + " reads values of two loops");
    };
    for (const Port& input : g_[n].inputs) FUSEBOX_TRY(join(input.node));
    for (const int control : g_[n].controls) FUSEBOX_TRY(join(control));
    return frame;
  }

  Result<int> Entered(int n, int around) {
    constexpr int kMostDepth = 64;
    constexpr int kMostFrames = 4096;
    const auto name = g_[n].def->attr().find("frame_name");
    const std::string text = name == g_[n].def->attr().end() ? "" : name->second.s();
    const auto [it, fresh] = numbers_.emplace(std::pair(around, text), count());
    if (fresh) frames_.push_back({around, frames_[static_cast<size_t>(around)].depth + 1});
    if (frames_.back().depth > kMostDepth || count() > kMostFrames)
      return Unsupported("more than " + std::to_string(kMostFrames) + " loops, or more than " +
                         std::to_string(kMostDepth) + " in each other");
    return it->second;
  }

  const Graph& g_;
  std::vector<int> of_;
  std::vector<Frame> frames_ = {{0, 0}};
  std::map<std::pair<int, std::string>, int> numbers_;
};

// One loop, which no other loop encloses.
class Loop {
 public:
  Loop(Context& context, Graph& g, const Frames& frames, int frame, int nodes)
      : context_(context), g_(g), frames_(frames), frame_(frame), nodes_(nodes) {}

  Status Extract() {
    FUSEBOX_TRY(FindParts());
    return Build().At([&] { return "loop " + name_; });
  }

  // The replacements of Exits, and of nodes that have run when the loop has run.
  std::map<Port, Port> results;
  std::map<int, int> done;

 private:
  Status FindParts() {
    for (int n = 0; n < nodes_; ++n) {
      if (g_[n].kind == Kind::kExit && InputIn(n)) exits_.push_back(n);
      if (frames_.of(n) != frame_) continue;
      if (g_[n].kind == Kind::kEnter) enters_.push_back(n);
      if (g_[n].kind == Kind::kMerge && IsVariable(n)) {
        variables_[n] = static_cast<int>(merges_.size());
        merges_.push_back(n);
      }
      if (g_[n].kind != Kind::kLoopCond) continue;
      if (condition_ >= 0) return Invalid("loop " + g_.NameOf(n) + " has two conditions");
      condition_ = n;
    }
    if (enters_.empty() || condition_ < 0 || g_[condition_].inputs.size() != 1)
      return Unsupported("the loop of " + (enters_.empty() ? "?" : g_.NameOf(enters_[0])) +
                         " has no condition (LoopCond)");
    name_ = g_.NameOf(condition_);
    name_.resize(std::min(name_.rfind('/'), name_.size()));
    for (int n = 0; n < nodes_; ++n)
      if (frames_.of(n) == frame_ && g_[n].kind == Kind::kSwitch && g_[n].inputs.size() == 2 &&
          g_[n].inputs[1].node == condition_ && variables_.contains(g_[n].inputs[0].node))
        switches_[n] = g_[n].inputs[0].node;
    return {};
  }

  bool InputIn(int exit) const {
    return g_[exit].inputs.size() == 1 && frames_.of(g_[exit].inputs[0].node) == frame_;
  }

  // Joins what enters with what the last iteration computed.
  bool IsVariable(int merge) const {
    const auto& inputs = g_[merge].inputs;
    return inputs.size() == 2 && g_[inputs[1].node].kind == Kind::kNextIteration &&
           g_[inputs[1].node].inputs.size() == 1 && g_[inputs[0].node].kind == Kind::kEnter &&
           g_[inputs[0].node].inputs.size() == 1;
  }

  // The loop variable or the value of the graph around that a value inside of the loop is.
  Result<std::optional<Port>> Outside(Port port) const {
    const Vertex& node = g_[port.node];
    if (const auto it = switches_.find(port.node); it != switches_.end())
      return std::optional(Port{it->second, 0});
    if (variables_.contains(port.node)) {
      if (port.output == 0) return std::optional(port);
      return Unsupported("reads which input a loop variable has (" + g_.Text(port) + ")");
    }
    if (node.kind == Kind::kEnter && frames_.of(port.node) == frame_) {
      const auto constant = node.def->attr().find("is_constant");
      if (node.inputs.size() == 1 && constant != node.def->attr().end() && constant->second.b())
        return std::optional(node.inputs[0]);
      return Unsupported("reads " + g_.Text(port) + ", which enters in the first iteration only");
    }
    if (!frames_.Within(port.node, frame_)) return std::optional(port);
    return std::optional<Port>();
  }

  Status Build() {
    Arguments arguments;
    std::vector<Port> next;
    std::vector<int> effects;
    for (const int merge : merges_) {
      const int step = g_[merge].inputs[1].node;
      arguments.numbers[{merge, 0}] = static_cast<int>(arguments.values.size());
      arguments.values.push_back(g_[g_[merge].inputs[0].node].inputs[0]);
      next.push_back(g_[step].inputs[0]);
      for (const int control : g_[step].controls)
        if (g_[control].effect && frames_.Within(control, frame_)) effects.push_back(control);
    }
    const auto outside = [&](Port port) { return Outside(port); };
    FUSEBOX_ASSIGN(Graph condition,
                   v1::Extract(context_, g_, {g_[condition_].inputs[0]}, {}, outside, arguments));
    FUSEBOX_ASSIGN(Graph body, v1::Extract(context_, g_, next, effects, outside, arguments));
    ReturnInvariants(body, arguments);
    std::vector<DType> types;
    for (const Port& value : arguments.values) types.push_back(context_.TypeOf(g_, value));
    FUSEBOX_ASSIGN(const std::string cond_name,
                   AddFunction(context_, std::move(condition), types, name_ + "_cond"));
    FUSEBOX_ASSIGN(const std::string body_name,
                   AddFunction(context_, std::move(body), types, name_ + "_body"));
    return AddWhile(arguments, types, cond_name, body_name);
  }

  void ReturnInvariants(Graph& body, const Arguments& arguments) const {
    std::map<int, int> nodes;
    for (int n = 0; n < static_cast<int>(body.nodes.size()); ++n)
      if (!body[n].def) nodes[body[n].argument] = n;
    for (auto i = static_cast<int>(merges_.size()); i < static_cast<int>(arguments.values.size()); ++i) {
      const auto [it, fresh] = nodes.emplace(i, static_cast<int>(body.nodes.size()));
      if (fresh) body.nodes.push_back({.def = nullptr, .kind = Kind::kOther, .argument = i, .effect = false});
      body.results.push_back({it->second, 0});
    }
  }

  Status AddWhile(const Arguments& arguments, const std::vector<DType>& types, const std::string& condition,
                  const std::string& body) {
    tf::NodeDef& def = context_.Make("While", name_);
    for (const DType type : types) (*def.mutable_attr())["T"].mutable_list()->add_type(ToDataType(type));
    (*def.mutable_attr())["cond"].mutable_func()->set_name(condition);
    (*def.mutable_attr())["body"].mutable_func()->set_name(body);
    const int loop = g_.Add(def, arguments.values);
    for (const int enter : enters_)
      for (const int control : g_[enter].controls) g_[loop].controls.push_back(control);
    for (int n = 0; n < nodes_; ++n) {
      if (!frames_.Within(n, frame_)) continue;
      g_[loop].effect |= g_[n].effect;
      done[n] = loop;
    }
    for (const int exit : exits_) {
      const Port from = g_[exit].inputs[0];
      const auto it = switches_.find(from.node);
      if (it == switches_.end() || from.output != 0)
        return Unsupported("its result " + g_.NameOf(exit) + " is no loop variable");
      results[{exit, 0}] = {loop, variables_.at(it->second)};
      done[exit] = loop;
    }
    return {};
  }

  Context& context_;
  Graph& g_;
  const Frames& frames_;
  int frame_, nodes_;
  std::string name_;
  std::vector<int> enters_, merges_, exits_;
  std::map<int, int> variables_;  // Merge -> its number
  std::map<int, int> switches_;   // of loop variables -> their Merge
  int condition_ = -1;
};

}  // namespace

Status ExtractLoops(Context& context, Graph& g) {
  const auto is_loop = [](const Vertex& node) { return node.kind == Kind::kEnter; };
  const auto is_exit = [](const Vertex& node) { return node.kind == Kind::kExit; };
  if (std::ranges::none_of(g.nodes, is_loop) && std::ranges::none_of(g.nodes, is_exit)) return {};
  const auto nodes = static_cast<int>(g.nodes.size());
  Frames frames(g);
  FUSEBOX_TRY(frames.Find());
  for (const Port& result : g.results)
    if (frames.of(result.node) != 0)
      return Unsupported("refers to " + g.Text(result) + ", which is inside of a loop");
  std::map<Port, Port> results;
  std::map<int, int> done;
  for (int frame = 1; frame < frames.count(); ++frame) {
    if (!frames.outermost(frame)) continue;
    Loop loop(context, g, frames, frame, nodes);
    FUSEBOX_TRY(loop.Extract());
    results.merge(loop.results);
    done.merge(loop.done);
  }
  Replace(g, results);
  Redirect(g, done);
  Prune(g, true);
  if (std::ranges::none_of(g.nodes, is_loop)) return {};
  return Unsupported("refers to a value inside of a loop");
}

}  // namespace fusebox::saved_model::v1
