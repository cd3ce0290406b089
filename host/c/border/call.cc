// SPDX-License-Identifier: Apache-2.0
#include "host/c/border/call.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <typeinfo>

#include "host/base/log_sink.h"

namespace fusebox::c {

fusebox_status StatusOf(Code code) {
  switch (code) {
    case Code::kInvalid: return FUSEBOX_INVALID;
    case Code::kUnsupported: return FUSEBOX_UNSUPPORTED;
    case Code::kNotFound: return FUSEBOX_NOT_FOUND;
    case Code::kIo: return FUSEBOX_IO;
    case Code::kOutOfMemory: return FUSEBOX_OUT_OF_MEMORY;
    case Code::kCancelled: return FUSEBOX_CANCELLED;
    case Code::kInternal: break;
  }
  return FUSEBOX_INTERNAL;
}

char* NewText(std::string_view text) noexcept {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

fusebox_status Caught(char** error) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc& thrown) {
    const bool named = typeid(thrown) != typeid(std::bad_alloc);
    if (error != nullptr) *error = NewText(named ? thrown.what() : "out of memory");
    return FUSEBOX_OUT_OF_MEMORY;
  } catch (const std::exception& thrown) {
    if (error != nullptr) *error = NewText(thrown.what());
    return FUSEBOX_INTERNAL;
  } catch (...) {
    if (error != nullptr) *error = NewText("unknown exception");
    return FUSEBOX_INTERNAL;
  }
}

fusebox_status Report(const Error& error, char** text) noexcept {
  if (text != nullptr) *text = NewText(error.message);
  return StatusOf(error.code);
}

Status Return(std::string_view text, char** out) {
  *out = NewText(text);
  if (*out == nullptr) return Fail(Code::kOutOfMemory, "no memory for the text");
  return {};
}

void SetSink(void (*sink)(void* user, int32_t level, const char* topic, const char* text), void* user) {
  static_assert(FUSEBOX_LOG_DEBUG == static_cast<int>(LogLevel::kDebug) &&
                FUSEBOX_LOG_INFO == static_cast<int>(LogLevel::kInfo) &&
                FUSEBOX_LOG_WARNING == static_cast<int>(LogLevel::kWarning) &&
                FUSEBOX_LOG_ERROR == static_cast<int>(LogLevel::kError));
  if (sink == nullptr) return SetLogSink({});
  SetLogSink([sink, user](LogLevel level, std::string_view topic, std::string_view text) {
    sink(user, static_cast<int32_t>(level), std::string(topic).c_str(), std::string(text).c_str());
  });
}

}  // namespace fusebox::c
