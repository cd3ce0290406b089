// SPDX-License-Identifier: Apache-2.0
#include "cli/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/base/print.h"
#include "host/base/table.h"

namespace fusebox::cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kNextLine = std::chrono::seconds(1);
constexpr int kWidth = 30;
// Before, an estimate of the remaining time would be a guess.
constexpr auto kLeastTime = std::chrono::seconds(1);
constexpr double kLeastPart = 0.05;

std::string Amount(const Progress& progress, uint64_t amount) {
  return progress.unit == Progress::Unit::kBytes ? BytesText(amount) : std::to_string(amount);
}

}  // namespace

std::string BytesText(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KB", "MB", "GB", "TB", "PB", "EB"}) {
    if (value < 999.95) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::optional<double> SecondsLeft(uint64_t done, uint64_t total, std::chrono::duration<double> taken) {
  const double part = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  if (taken < kLeastTime || part < kLeastPart || part >= 1) return std::nullopt;
  return taken.count() * (1 - part) / part;
}

std::string TimeLeft(double seconds) {
  const double left = std::ceil(seconds);
  if (left < 100) return fmt::format("about {:.0f} s left", left);
  if (left < 100 * 60) return fmt::format("about {:.0f} min left", std::ceil(left / 60));
  return fmt::format("about {:.0f} h left", std::ceil(left / 3600));
}

ProgressBar::ProgressBar(std::chrono::milliseconds patience)
    : terminal_(isatty(STDERR_FILENO) != 0), patience_(patience) {}

void ProgressBar::Update(const Progress& progress) {
  const Clock::time_point now = Clock::now();
  done_ = progress.done;
  if (now - made_ < patience_) return;
  const uint64_t total = std::max({expected_, progress.total, uint64_t{1}});
  const auto percent = static_cast<int>(100.0 * static_cast<double>(done_) / static_cast<double>(total));
  if (!begun_) {
    begun_ = true;
    begin_ = now;
    if (!terminal_) Message(fmt::format("{}: {}", progress.what, Amount(progress, total)));
  } else if (now - shown_ < (terminal_ ? std::chrono::milliseconds(kRedraw) : kNextLine)) {
    return;
  }
  shown_ = now;
  const std::string far =
      fmt::format("{:3} %, {} of {}", percent, Amount(progress, done_), Amount(progress, total));
  if (!terminal_) {
    if (done_ > 0) Message(progress.what + ": " + far);
    return;
  }
  const int full = percent * kWidth / 100;
  const std::optional<double> left = SecondsLeft(done_, total, now - made_);
  if (left) left_ = std::min(left_, *left);
  Draw(fmt::format("{} [{:#<{}}{:<{}}] {}{}", Printable(progress.what), "", full, "", kWidth - full, far,
                   left ? ", " + TimeLeft(left_) : ""));
}

// Overwrites the rest of a longer previous line.
void ProgressBar::Draw(const std::string& line) {
  std::fputs(("\r" + line + "\x1b[K").c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::Clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

void ProgressBar::Finish() {
  Clear();
  if (done_ == 0) return;
  const std::chrono::duration<double> took = Clock::now() - begin_;
  Message(fmt::format("packed {} of weights in {:.2f} s", BytesText(done_), took.count()));
}

}  // namespace fusebox::cli
