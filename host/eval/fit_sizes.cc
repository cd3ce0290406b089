// SPDX-License-Identifier: Apache-2.0
#include "host/eval/fit_sizes.h"

#include <bit>
#include <cstdlib>

namespace fusebox {
namespace {

constexpr int64_t kStep = 5040;             // divisible by common strides and blocks
constexpr int64_t kHuge = kStep * 106'000;  // above any clamp, within i32
constexpr size_t kMostSymbols = 24;
constexpr size_t kMostCoupled = 8;

class Fitter {
 public:
  Fitter(size_t symbols, const Sample& sample) : n_(symbols), sample_(sample) {}

  std::vector<std::optional<Fit>> Run() {
    if (n_ > kMostSymbols || !FindGroups() || !FindSlopes() || !Check()) return {};
    for (size_t k = 0; k < groups_.size(); ++k)
      if (std::popcount(groups_[k]) > 1) Separate(k);
    return std::move(fits_);
  }

 private:
  using Row = std::vector<int64_t>;
  using Group = uint32_t;  // symbols that only change together, a bit each

  static size_t Lowest(Group group) { return static_cast<size_t>(std::countr_zero(group)); }
  int64_t Base(size_t k) const { return base_[Lowest(groups_[k])]; }
  Row With(Group group, int64_t size, Row sizes) const {
    for (size_t i = 0; i < n_; ++i)
      if (group >> i & 1) sizes[i] = size;
    return sizes;
  }
  std::optional<Row> At(const Row& sizes) const {
    auto row = sample_(sizes);
    if (row && !first_.empty()) row->resize(first_.size(), kNoNumber);  // another rank: no number fits
    return row;
  }
  std::optional<Row> At(Group group, int64_t size) const { return At(With(group, size, base_)); }

  // An op that runs with all sizes different couples no symbols.
  bool FindGroups() {
    for (size_t i = 0; i < n_; ++i) groups_.push_back(Group{1} << i);
    auto row = At(Spread());
    if (!row && n_ > 1 && n_ <= kMostCoupled) {
      groups_.clear();
      base_.assign(n_, kStep);
      if (!At(base_)) return false;
      for (Group left = (Group{1} << n_) - 1; left != 0; left &= ~groups_.back())
        if (!FindSmallest(left)) return false;
      row = At(Spread());
    }
    if (row) first_ = *std::move(row);
    return !first_.empty();
  }
  const Row& Spread() {
    base_.resize(n_);
    for (size_t k = 0; k < groups_.size(); ++k)
      base_ = With(groups_[k], kStep * static_cast<int64_t>(2 * k + 1), base_);
    return base_;
  }
  bool FindSmallest(Group left) {
    for (int size = 1; size <= std::popcount(left); ++size) {
      for (Group group = left; group != 0; group = (group - 1) & left) {
        if (!(group >> Lowest(left) & 1) || std::popcount(group) != size || !At(group, 2 * kStep)) continue;
        groups_.push_back(group);
        return true;
      }
    }
    return false;
  }

  // Assumes that each number grows with one group, or with none.
  bool FindSlopes() {
    group_of_.assign(first_.size(), groups_.size());
    for (const int64_t number : first_)
      fits_.push_back(number == kNoNumber ? std::nullopt : std::optional(Fit{{}, 0, number}));
    for (size_t k = 0; k < groups_.size(); ++k) {
      const auto row = At(groups_[k], Base(k) + kStep);
      if (!row) return false;
      for (size_t j = 0; j < fits_.size(); ++j) {
        if ((*row)[j] == first_[j] || !fits_[j]) continue;
        const int64_t rise = (*row)[j] == kNoNumber ? 1 : (*row)[j] - first_[j];
        const int64_t factor = rise / kStep;
        if (rise % kStep != 0 || group_of_[j] < k) fits_[j].reset();
        else fits_[j] = Fit{{Lowest(groups_[k])}, factor, first_[j] - factor * Base(k)};
        group_of_[j] = k;
      }
    }
    return true;
  }

  // Checks small, rising, falling, indivisible, negative and huge sizes.
  bool Check() {
    for (const int64_t all : {0, 1, 2, 3, 5, 12}) Compare([&](size_t) { return all; });
    Compare([&](size_t k) { return 97 + static_cast<int64_t>(k); });
    Compare([&](size_t k) { return 1013 - 2 * static_cast<int64_t>(k); });
    Compare([&](size_t k) { return Base(k) + 1 + static_cast<int64_t>(k); });
    Compare([&](size_t k) { return -3 - 2 * static_cast<int64_t>(k); });
    bool ran = Compare([&](size_t k) { return kHuge + static_cast<int64_t>(k); });
    for (size_t huge = 0; !ran && huge < groups_.size(); ++huge)  // where products overflow
      if (!Compare([&](size_t k) { return k == huge ? kHuge : Base(k); }) &&
          !Compare([&](size_t k) { return k == huge ? kHuge : 12; }))
        return false;
    return true;
  }
  template <class SizeOf>
  bool Compare(const SizeOf& size_of) {
    Row sizes = base_;
    for (size_t k = 0; k < groups_.size(); ++k) sizes = With(groups_[k], size_of(k), std::move(sizes));
    const auto row = At(sizes);
    for (size_t j = 0; row && j < fits_.size(); ++j) {
      if (!fits_[j]) continue;
      const Fit& fit = *fits_[j];
      const int64_t wanted = fit.offset + (fit.symbols.empty() ? 0 : fit.factor * sizes[fit.symbols[0]]);
      const bool overflows = std::abs(wanted) > INT32_MAX && fit.factor != 1;  // of an op on i32
      if ((*row)[j] != wanted && !overflows) fits_[j].reset();
    }
    return row.has_value();
  }

  // Finds the symbol of a group: the one that the number follows down to 1; else one that the op rejects at 1
  // with larger others; else all of them, broadcast.
  void Separate(size_t k) {
    std::vector<size_t> members;
    std::vector<size_t> rigid;
    std::vector<std::vector<size_t>> followed(fits_.size());
    for (size_t i = 0; i < n_; ++i) {
      if (!(groups_[k] >> i & 1)) continue;
      members.push_back(i);
      const auto row = At(Group{1} << i, 1);
      if (!row) rigid.push_back(i);
      for (size_t j = 0; row && j < fits_.size(); ++j) {
        if (group_of_[j] != k || !fits_[j] || (*row)[j] == first_[j]) continue;
        if ((*row)[j] == fits_[j]->factor + fits_[j]->offset) followed[j].push_back(i);
        else fits_[j].reset();
      }
    }
    for (size_t j = 0; j < fits_.size(); ++j) {
      if (group_of_[j] != k || !fits_[j]) continue;
      if (followed[j].size() > 1) fits_[j].reset();
      else if (!followed[j].empty()) fits_[j]->symbols = followed[j];
      else if (!rigid.empty()) fits_[j]->symbols = {rigid[0]};
      else fits_[j]->symbols = members;
    }
  }

  const size_t n_;
  const Sample& sample_;
  Row base_, first_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;  // by number; past the end: none
  std::vector<std::optional<Fit>> fits_;
};

}  // namespace

std::vector<std::optional<Fit>> FitSizes(size_t symbols, const Sample& sample) {
  return Fitter(symbols, sample).Run();
}

}  // namespace fusebox
