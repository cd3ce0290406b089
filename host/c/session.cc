// SPDX-License-Identifier: Apache-2.0
#include "host/session.h"

#include <fmt/format.h>

#include "host/c/handles.h"
#include "host/c/options.h"
#include "host/c/report.h"

using namespace fusebox;

void fusebox_session::Selected() {
  inputs.clear();
  outputs.clear();
  for (const Session::Slot& slot : session->inputs()) inputs.push_back(slot.type);
  for (const Session::Slot& slot : session->outputs()) outputs.push_back(slot.type);
  ran = false;
}

fusebox_status fusebox_thread_pool_create(int32_t threads, fusebox_thread_pool** out, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(out);
    *out = nullptr;
    FUSEBOX_ASSIGN(auto pool, ThreadPool::Create(threads));
    *out = new fusebox_thread_pool{std::move(pool)};
    return {};
  });
}

void fusebox_thread_pool_free(fusebox_thread_pool* pool) noexcept { delete pool; }

int32_t fusebox_thread_pool_threads(const fusebox_thread_pool* pool) noexcept {
  return pool == nullptr ? -1 : pool->pool->threads();
}

fusebox_status fusebox_session_create(fusebox_model* model, const char* options, fusebox_thread_pool* pool,
                                      fusebox_session** out, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(out);
    *out = nullptr;
    FUSEBOX_C_REQUIRE(model);
    FUSEBOX_ASSIGN(SessionOptions parsed, c::ParseSessionOptions(options));
    if (pool != nullptr) parsed.pool = pool->pool;
    auto handle = std::make_unique<fusebox_session>();
    handle->model = model->model;
    FUSEBOX_ASSIGN(handle->session, Session::Create(model->model, parsed));
    handle->Selected();
    *out = handle.release();
    return {};
  });
}

void fusebox_session_free(fusebox_session* session) noexcept { delete session; }

const char* fusebox_session_signature(const fusebox_session* session) noexcept {
  return session == nullptr ? nullptr : session->session->signature().c_str();
}

fusebox_status fusebox_session_select(fusebox_session* session, const char* key, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(key);
    FUSEBOX_TRY(session->session->SelectSignature(key));
    session->Selected();
    return {};
  });
}

fusebox_status fusebox_session_run(fusebox_session* session, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    session->ran = false;
    FUSEBOX_TRY(session->session->Run());
    session->ran = true;
    return {};
  });
}

fusebox_status fusebox_session_cancel(fusebox_session* session) noexcept {
  if (session == nullptr) return FUSEBOX_INVALID;
  session->session->Cancel();
  return FUSEBOX_OK;
}

fusebox_status fusebox_session_prepare(fusebox_session* session, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_TRY(session->session->Prepare());
    session->ran = false;
    FUSEBOX_ASSIGN(session->outputs, session->session->OutputTypes());
    return {};
  });
}

fusebox_status fusebox_session_reset_state(fusebox_session* session, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    session->session->ResetState();
    return {};
  });
}

fusebox_status fusebox_session_report(const fusebox_session* session, char** json, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(json);
    *json = nullptr;
    FUSEBOX_C_REQUIRE(session);
    return c::Return(c::ReportOf(*session->session), json);
  });
}

fusebox_status fusebox_session_explain(const fusebox_session* session, char** text, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(text);
    *text = nullptr;
    FUSEBOX_C_REQUIRE(session);
    return c::Return(session->session->Explain(), text);
  });
}

fusebox_status fusebox_session_times(fusebox_session* session, int32_t* count, char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(count);
    session->times = session->session->times();
    *count = static_cast<int32_t>(session->times.size());
    return {};
  });
}

fusebox_status fusebox_session_time(const fusebox_session* session, int32_t index, fusebox_node_time* out,
                                    char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(session);
    FUSEBOX_C_REQUIRE(out);
    FUSEBOX_TRY(c::CheckSize(*out, "FUSEBOX_NODE_TIME"));
    if (index < 0 || static_cast<size_t>(index) >= session->times.size())
      return Invalid(fmt::format("no time {}; there are {}", index, session->times.size()));
    const NodeTime& time = session->times[static_cast<size_t>(index)];
    *out = {.struct_size = out->struct_size,
            .node = static_cast<int32_t>(time.node),
            .nodes = static_cast<int32_t>(time.nodes),
            .function = time.function.c_str(),
            .op = time.op.c_str(),
            .name = time.name.c_str(),
            .runner = time.runner.c_str(),
            .runs = time.runs,
            .total_ns = time.total_ns};
    return {};
  });
}

fusebox_status fusebox_session_times_json(const fusebox_session* session, char** json,
                                          char** error) noexcept {
  return c::Call(error, [&]() -> Status {
    FUSEBOX_C_REQUIRE(json);
    *json = nullptr;
    FUSEBOX_C_REQUIRE(session);
    return c::Return(c::TimesOf(*session->session), json);
  });
}
