// SPDX-License-Identifier: Apache-2.0
// Steps run one after the other; the elements of a step are divided into tiles, whose sums stay in the cache
// from the convolutions to the gates.
#include <algorithm>
#include <atomic>
#include <vector>

#include <fusebox/weights.hpp>

#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/conv_lstm/engines.h"
#include "plugins/rnn/conv_lstm/frame.h"

namespace fusebox::rnn {
namespace {

struct Tile {
  int64_t row;  // of the batch
  Elements elements;
};

// How a step is divided into tiles.
class Tiles {
 public:
  // `floats`: sums of an element. Minimal filtering works on blocks of elements and needs memory for all of
  // its products. Each thread gets several tiles.
  Tiles(const ConvLstmSpec& spec, size_t floats, const WinogradForm* form, uint32_t threads)
      : out_(spec.of_x.out) {
    constexpr int64_t kFewest = 24;
    constexpr int64_t kMost = 512;
    constexpr int64_t kTilesOfThread = 3;
    const int64_t down = form ? static_cast<int64_t>(form->outputs[0]) : 1;
    const int64_t right = form ? static_cast<int64_t>(form->outputs[1]) : 1;
    constexpr size_t kBlocks = math::kBlocksBytes / sizeof(float);
    constexpr size_t kSums = math::kSumsBytes / sizeof(float);
    const size_t fits = form ? kBlocks * form->outputs[0] * form->outputs[1] / form->planes() : kSums;
    auto most = std::clamp<int64_t>(static_cast<int64_t>(fits / floats), kFewest, kMost);
    if (threads > 1)
      most = std::clamp<int64_t>(spec.batch * spec.positions() / (kTilesOfThread * threads), kFewest, most);
    width_ = std::clamp<int64_t>((out_[2] + right - 1) / right, 1, most / down / right) * right;
    rows_ = std::clamp<int64_t>(most / width_ / down, 1, std::max<int64_t>((out_[1] + down - 1) / down, 1)) *
            down;
    across_ = (out_[2] + width_ - 1) / width_;
    down_ = (out_[1] + rows_ - 1) / rows_;
    count_ = spec.batch * out_[0] * down_ * across_;
  }

  int64_t count() const { return count_; }
  int64_t elements() const { return rows_ * width_; }  // at most, of a tile
  Tile operator[](int64_t i) const {
    const int64_t w = i % across_ * width_;
    const int64_t h = i / across_ % down_ * rows_;
    const int64_t d = i / across_ / down_;
    return {d / out_[0], {{d % out_[0], h, w}, std::min(rows_, out_[1] - h), std::min(width_, out_[2] - w)}};
  }

 private:
  Space out_;
  int64_t width_, rows_, across_, down_, count_;
};

// The memory of a run: frames of x and of h before and after a step; for each row of the batch whether the
// values in these are moderate; and the work of a tile for each part.
struct Memory {
  float *x, *before, *after;
  uint8_t *x_moderate, *before_moderate, *after_moderate;
  float* work;
};

void SetImmoderate(uint8_t& flag) { std::atomic_ref(flag).store(0, std::memory_order_relaxed); }

class PackedConvLstm final : public ConvLstmEngine {
 public:
  PackedConvLstm(const ConvLstmSpec& spec, const Node& node)
      : code_(BestCellCode()),
        panels_((kConvGates * static_cast<size_t>(spec.cells) + code_.lanes - 1) / code_.lanes),
        width_(panels_ * code_.lanes) {
    if (keeps_weights(node.host())) PackOnce(spec, node);
  }

  size_t ScratchBytes(const ConvLstmSpec& spec, uint32_t threads) const override {
    const Frame x = FrameOfX(spec);
    const Frame h = FrameOfH(spec);
    constexpr double kMost = double{1ULL << 40};
    const double batch = static_cast<double>(spec.batch);
    const double work = static_cast<double>(WorkFloats(spec, threads));
    const double bytes = sizeof(float) * (batch * (x.measure() + 2 * h.measure()) + threads * work);
    if (bytes > kMost) throw Error{FBX_OUT_OF_MEMORY, "its padded states exceed 1 TiB"};
    return ScratchReader::Bytes(FrameFloats(spec, x) * sizeof(float)) +
           2 * ScratchReader::Bytes(FrameFloats(spec, h) * sizeof(float)) +
           3 * ScratchReader::Bytes(static_cast<size_t>(spec.batch)) +
           ScratchReader::Bytes(Parts(spec, threads) * WorkFloats(spec, threads) * sizeof(float));
  }

  void Run(const Node& node, const ConvLstmSpec& spec, std::byte* scratch, uint32_t threads) const override {
    PackOnce(spec, node);
    const ConvLstmBuffers<float> buffers(node, spec);
    const Frame x = FrameOfX(spec);
    const Frame h = FrameOfH(spec);
    const Job job{node,
                  spec,
                  buffers,
                  ElementMask(node, spec),
                  x,
                  h,
                  TilesOf(spec, threads),
                  Parts(spec, threads),
                  WorkFloats(spec, threads),
                  Form(spec) ? Form(spec)->most : 0};
    Memory memory = MemoryOf(job, scratch);
    if (!spec.sequence || spec.masked) std::fill_n(buffers.output, node.out(0).count(), 0.0F);
    const int64_t rows = h.rows();
    const int64_t state = spec.positions() * spec.cells;
    for (int64_t b = 0; b < spec.batch; ++b) {
      h.Fill(buffers.initial_h + b * state, memory.before + b * h.floats(), 0, rows);
      memory.before_moderate[b] =
          code_.within(buffers.initial_h + b * state, static_cast<size_t>(state), job.most) ? 1 : 0;
    }
    for (int64_t step = 0; step < spec.steps; ++step) {
      Step(job, memory, step);
      std::swap(memory.before, memory.after);
      std::swap(memory.before_moderate, memory.after_moderate);
    }
    for (int64_t b = 0; b < spec.batch; ++b)
      h.Read(memory.before + b * h.floats(), buffers.h + b * state, 0, rows);
  }

 private:
  // The part of a run that does not change from step to step.
  struct Job {
    const Node& node;
    const ConvLstmSpec& spec;
    const ConvLstmBuffers<float>& buffers;
    ElementMask mask;
    const Frame &x, &h;
    Tiles tiles;
    size_t parts, work_floats;
    float most;  // a moderate value
  };

  // The form of both convolutions: their products are added before they are transformed.
  static const WinogradForm* Form(const ConvLstmSpec& spec) {
    const WinogradForm* const form = FormOf(spec.of_h);
    return form ? form : FormOf(spec.of_x);
  }
  Frame FrameOfX(const ConvLstmSpec& spec) const {
    return {spec.of_x, FormOf(spec.of_x) == Form(spec) ? Form(spec) : nullptr, code_.lanes, panels_};
  }
  Frame FrameOfH(const ConvLstmSpec& spec) const {
    return {spec.of_h, FormOf(spec.of_h), code_.lanes, panels_};
  }
  Tiles TilesOf(const ConvLstmSpec& spec, uint32_t threads) const {
    return {spec, width_, Form(spec), Work(spec) < static_cast<double>(math::kParallelWork) ? 1 : threads};
  }
  static size_t FrameFloats(const ConvLstmSpec& spec, const Frame& frame) {
    return static_cast<size_t>(spec.batch * frame.floats());
  }
  // Sums of a tile. Gates are read in whole vectors, also the last one.
  size_t SumFloats(const Tiles& tiles) const {
    return static_cast<size_t>(tiles.elements()) * width_ + code_.lanes;
  }
  // Sums; inputs and products of minimal filtering, or gathered inputs.
  size_t WorkFloats(const ConvLstmSpec& spec, uint32_t threads) const {
    const Tiles tiles = TilesOf(spec, threads);
    const auto elements = static_cast<size_t>(tiles.elements());
    size_t more = std::max(FrameOfX(spec).gathered(elements), FrameOfH(spec).gathered(elements));
    if (const WinogradForm* const form = Form(spec)) {
      const size_t blocks = elements / (form->outputs[0] * form->outputs[1]);
      const auto channels = static_cast<size_t>(std::max(spec.of_x.channels, spec.of_h.channels));
      more = std::max(more, form->planes() * blocks * (channels + width_));
    }
    return SumFloats(tiles) + more;
  }

  Memory MemoryOf(const Job& job, std::byte* scratch) const {
    ScratchReader reader(scratch);
    const auto floats = [&](size_t count) {
      auto* const at = reader.Take<float>(count);
      std::fill_n(at, count, 0.0F);
      return at;
    };
    const auto flags = [&] { return reader.Take<uint8_t>(static_cast<size_t>(job.spec.batch)); };
    Memory memory{};
    memory.x = floats(FrameFloats(job.spec, job.x));
    memory.before = floats(FrameFloats(job.spec, job.h));
    memory.after = floats(FrameFloats(job.spec, job.h));
    memory.x_moderate = flags();
    memory.before_moderate = flags();
    memory.after_moderate = flags();
    memory.work = reader.Take<float>(job.parts * job.work_floats);
    return memory;
  }

  // Multiplications of a step.
  double Work(const ConvLstmSpec& spec) const {
    const int64_t inputs = spec.of_x.taps() * spec.of_x.channels + spec.of_h.taps() * spec.cells;
    return static_cast<double>(spec.batch * spec.positions()) * static_cast<double>(width_) *
           static_cast<double>(inputs);
  }
  size_t Parts(const ConvLstmSpec& spec, uint32_t threads) const {
    if (Work(spec) < static_cast<double>(math::kParallelWork)) return 1;
    const int64_t tiles = TilesOf(spec, threads).count();
    return static_cast<size_t>(std::clamp<int64_t>(threads, 1, std::max<int64_t>(tiles, 1)));
  }

  PackedWeights::Recipe RecipeOf(const ConvLstmSpec& spec, const Node& node) const {
    PackedWeights::Recipe recipe{.what = "conv_lstm"};
    constexpr int64_t kLayout = 2;  // another number for another order of the packed weights
    recipe.size = (width_ + FrameOfX(spec).weights() + FrameOfH(spec).weights()) * sizeof(float);
    recipe.numbers = {kLayout, static_cast<int64_t>(code_.lanes), spec.cells, spec.of_x.channels,
                      spec.of_x.dilations[2] == 1};
    for (const WinogradForm* const form : {FrameOfX(spec).form(), FrameOfH(spec).form()})
      recipe.numbers.push_back(form ? form - kWinogradForms : -1);
    for (const Convolution& c : {spec.of_x, spec.of_h})
      recipe.numbers.insert(recipe.numbers.end(), c.kernel.begin(), c.kernel.end());
    for (const uint32_t i : {kConvWeights, kConvRecurrent, kConvBias}) recipe.sources.push_back(node.in(i));
    return recipe;
  }

  void PackOnce(const ConvLstmSpec& spec, const Node& node) const {
    weights_.make_once([&] {
      return PackedWeights(node, RecipeOf(spec, node),
                           [&](void* to) { Pack(spec, node, static_cast<float*>(to)); });
    });
  }
  const float* bias() const {
    return weights_->data<float>();
  }  // then the weights of x, then the weights of h

  void Pack(const ConvLstmSpec& spec, const Node& node, float* to) const {
    const Frame x = FrameOfX(spec);
    const Frame h = FrameOfH(spec);
    std::fill_n(to, width_ + x.weights() + h.weights(), 0.0F);
    std::copy_n(node.in(kConvBias).data<const float>(), kConvGates * static_cast<size_t>(spec.cells), to);
    x.Pack(node.in(kConvWeights), to + width_);
    h.Pack(node.in(kConvRecurrent), to + width_ + x.weights());
  }

  void Step(const Job& job, const Memory& memory, int64_t step) const {
    const auto split = [&](int64_t count, size_t into, const auto& run) {
      const auto parts = static_cast<int64_t>(into);
      parallel_for(job.node.host(), into, 1, [&](size_t begin, size_t end, uint32_t) {
        for (auto part = static_cast<int64_t>(begin); part < static_cast<int64_t>(end); ++part)
          run(part, part * count / parts, (part + 1) * count / parts);
      });
    };
    const int64_t rows = job.x.rows();
    const int64_t x_size = rows * job.x.row_floats();
    std::fill_n(memory.x_moderate, job.spec.batch, uint8_t{1});
    std::fill_n(memory.after_moderate, job.spec.batch, uint8_t{1});
    const size_t copies = job.spec.batch * x_size < math::kAwakeWork ? 1 : job.parts;
    split(job.spec.batch * rows, copies, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / rows;
        const int64_t row = i % rows;
        const float* const from = job.buffers.input + job.spec.at(b, step) * x_size;
        job.x.Fill(from, memory.x + b * job.x.floats(), row, row + 1);
        if (!code_.within(from + row * job.x.row_floats(), static_cast<size_t>(job.x.row_floats()), job.most))
          SetImmoderate(memory.x_moderate[b]);
      }
    });
    split(job.tiles.count(), job.parts, [&](int64_t part, int64_t begin, int64_t end) {
      float* const work = memory.work + static_cast<size_t>(part) * job.work_floats;
      for (int64_t i = begin; i < end; ++i) RunTile(job, memory, step, job.tiles[i], work);
    });
  }

  void RunTile(const Job& job, const Memory& memory, int64_t step, const Tile& tile, float* sums) const {
    const int64_t at = job.spec.at(tile.row, step);
    const Elements& elements = tile.elements;
    if (!job.mask.per_step() || job.mask.kept(at, elements.first)) Multiply(job, memory, tile, sums);
    for (int64_t r = 0; r < elements.rows; ++r) {
      Space from = elements.first;
      from[1] += r;
      const float* const row_sums = sums + static_cast<size_t>(r * elements.width) * width_;
      // Runs of elements with the same mask.
      for (int64_t begin = 0, end = 0; begin < elements.width; begin = end) {
        const auto kept = [&](int64_t i) { return job.mask.kept(at, {from[0], from[1], from[2] + i}); };
        const bool is_kept = kept(begin);
        end = job.mask.per_step() ? elements.width : begin + 1;
        while (end < elements.width && kept(end) == is_kept) ++end;
        FinishRun(job, memory, step, tile.row, {from[0], from[1], from[2] + begin}, end - begin, is_kept,
                  row_sums + static_cast<size_t>(begin) * width_);
      }
    }
  }

  // The sums of a tile: the direct convolutions, then those by minimal filtering.
  void Multiply(const Job& job, const Memory& memory, const Tile& tile, float* sums) const {
    const float* const bias = this->bias();
    struct Part {
      const Frame& frame;
      const float *values, *weights;
      bool minimal;
    };
    const Part parts[] = {{job.x, memory.x + tile.row * job.x.floats(), bias + width_,
                           job.x.form() && memory.x_moderate[tile.row] != 0},
                          {job.h, memory.before + tile.row * job.h.floats(), bias + width_ + job.x.weights(),
                           job.h.form() && memory.before_moderate[tile.row] != 0}};
    const Elements& elements = tile.elements;
    float* const rest = sums + SumFloats(job.tiles);
    const float* start = bias;
    for (const Part& part : parts) {
      if (part.minimal) continue;
      part.frame.Multiply(part.values, part.weights, elements, start, start == bias ? 0 : width_, rest, sums);
      start = sums;
    }
    if (!parts[0].minimal && !parts[1].minimal) return;
    if (start == bias)
      for (size_t i = 0; i < elements.count(); ++i) std::copy_n(bias, width_, sums + i * width_);
    const WinogradForm& form = *Form(job.spec);
    float* const inputs = rest + form.planes() * elements.blocks(form) * width_;
    bool first = true;
    for (const Part& part : parts) {
      if (!part.minimal) continue;
      part.frame.MultiplyMinimal(code_, part.values, part.weights, elements, first, inputs, rest);
      first = false;
    }
    AddBlocks(form, elements, rest, sums);
  }

  void AddBlocks(const WinogradForm& form, const Elements& elements, const float* products,
                 float* sums) const {
    const size_t blocks = elements.blocks(form);
    const size_t across = elements.blocks_across(form);
    const auto width = static_cast<size_t>(elements.width);
    const auto rows = static_cast<size_t>(elements.rows);
    for (size_t block = 0; block < blocks; ++block) {
      const size_t row = block / across * form.outputs[0];
      const size_t column = block % across * form.outputs[1];
      code_.winograd_out[&form - kWinogradForms]({products + block * width_, blocks * width_, width_,
                                                  sums + (row * width + column) * width_, width * width_,
                                                  rows - row, width - column});
    }
  }

  // Gates, states and output of `count` elements of a row of a tile.
  void FinishRun(const Job& job, const Memory& memory, int64_t step, int64_t row, const Space& first,
                 int64_t count, bool kept, const float* sums) const {
    const ConvLstmSpec& spec = job.spec;
    const Space& size = spec.of_x.out;
    const int64_t u = spec.cells;
    const int64_t state = spec.positions() * u;
    const int64_t floats = count * u;
    const int64_t index = ((first[0] * size[1] + first[1]) * size[2] + first[2]) * u;
    const int64_t in_frame = row * job.h.floats() + job.h.At(first);
    float* const h = memory.after + in_frame;
    float* const c = job.buffers.c + row * state + index;
    float* const output =
        job.buffers.output + (spec.sequence ? row * spec.steps + step : row) * state + index;
    if (!kept) {
      std::copy_n(memory.before + in_frame, floats, h);
      if (memory.before_moderate[row] == 0) SetImmoderate(memory.after_moderate[row]);
      if (spec.zero_output) std::fill_n(output, floats, 0.0F);
      else if (spec.sequence && step > 0) std::copy_n(output - state, floats, output);
      return;
    }
    code_.lstm({static_cast<size_t>(count), static_cast<size_t>(u), sums, width_, c, h, spec.activation,
                spec.gate_activation});
    if (!code_.within(h, static_cast<size_t>(floats), job.most)) SetImmoderate(memory.after_moderate[row]);
    if (spec.sequence || step + 1 == spec.steps || spec.masked) std::copy_n(h, floats, output);
  }

  const CellCode& code_;
  size_t panels_, width_;  // of the sums of one element
  LatePackedWeights weights_;
};

}  // namespace

std::unique_ptr<const ConvLstmEngine> MakePackedConvLstm(const ConvLstmSpec& spec, const Node& node) {
  return std::make_unique<const PackedConvLstm>(spec, node);
}

}  // namespace fusebox::rnn
