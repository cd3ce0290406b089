// SPDX-License-Identifier: Apache-2.0
#include "cli/base/crash.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cli/base/command.h"
#include "host/plugin/call.h"

namespace fusebox::cli {
namespace {

// The current call of the main thread, which also stands for threads that a plugin started: the main thread
// waits for them in that call.
const PluginCall* const* main_call = nullptr;

const PluginCall* CallInProgress() { return current_call != nullptr ? current_call : *main_call; }

// A line of text in fixed memory, for signal handlers.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    for (const char c : text.substr(0, text_.size() - 1 - size_))
      text_[size_++] = static_cast<unsigned char>(c) < ' ' ? '?' : c;
    return *this;
  }
  Line& operator<<(int number) {
    std::array<char, 12> digits;
    return *this << std::string_view(digits.data(),
                                     std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  }
  void Write() {
    text_[size_++] = '\n';
    static_cast<void>(!write(STDERR_FILENO, text_.data(), size_));
  }

 private:
  std::array<char, 1000> text_;
  size_t size_ = 0;
};

void WritePlace(Line& line, const PluginCall& call) {
  line << " in " << call.what << " " << FromAbi(call.subject);
  if (call.node.len > 0) line << " at node " << FromAbi(call.node);
}

[[noreturn]] void End(Line& line) {
  line.Write();
  _exit(static_cast<int>(Exit::kInternal));
}

void OnSignal(int signal) {
  const PluginCall* const call = CallInProgress();
  if (call == nullptr) {
    raise(signal);  // SA_RESETHAND: the default action
    return;
  }
  Line line;
  line << "fusebox: " << FromAbi(call->plugin) << " crashed";
  WritePlace(line, *call);
  End(line << " (signal SIG" << sigabbrev_np(signal) << ")");
}

void OnExit(int status, void*) {
  const PluginCall* const call = CallInProgress();
  if (call == nullptr) return;
  Line line;
  line << "fusebox: " << FromAbi(call->plugin) << " called exit(" << status << ")";
  WritePlace(line, *call);
  End(line);
}

}  // namespace

void ReportPluginCrashes() {
  static std::array<char, 1 << 16> stack;  // for overflows of the main thread's stack
  main_call = &current_call;
  const stack_t alternate{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&alternate, nullptr);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS}) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action = {};
    action.sa_handler = OnSignal;
    action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
  on_exit(OnExit, nullptr);
}

}  // namespace fusebox::cli
