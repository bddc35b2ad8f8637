#include "model/event.h"

#include <array>
#include <type_traits>
#include <utility>

#include "model/event_fields.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

// In the order of the variant.
constexpr std::array<std::string_view, std::variant_size_v<EventBody>> kKinds = {
    "daemon-started",  "node-joined",         "node-went",      "node-marked",
    "queues-applied",  "job-submitted",       "job-held",       "job-changed",
    "job-stopping",    "job-resumed",         "job-requeued",   "job-ended",
    "cycle-ran",       "worker-placed",       "worker-leaving", "worker-started",
    "worker-ended",    "checkpoint-taken",    "use-noted",      "numbers-skipped",
    "user-set",        "user-removed",        "token-made",     "token-revoked",
    "job-idle",        "request-answered",    "speed-reported", "policy-applied",
    "reservation-set", "reservation-removed", "job-resized"};

constexpr std::array<std::string_view, 14> kStopNames = {
    "none",        "paused",    "shrunk",        "moved",      "cancelled",
    "suspended",   "requeued",  "time-limit",    "idle-limit", "member-failed",
    "member-done", "regrouped", "never-started", "dependency"};

template <std::size_t I = 0>
bool UnpackKind(std::size_t kind, Unpacker& in, EventBody& out) {
  if constexpr (I < std::variant_size_v<EventBody>) {
    if (kind != I) return UnpackKind<I + 1>(kind, in, out);
    Fields(in, out.emplace<I>());
    return true;
  } else {
    return false;
  }
}

}  // namespace

std::string_view Name(StopWhy why) { return kStopNames[static_cast<std::size_t>(why)]; }

std::string_view Name(End end) {
  constexpr std::array<std::string_view, 3> names = {"succeeded", "failed", "cancelled"};
  return names[static_cast<std::size_t>(end)];
}

std::string_view KindOf(const EventBody& body) { return kKinds[body.index()]; }

JobNumber JobOf(const EventBody& body) {
  return std::visit(
      [](const auto& event) -> JobNumber {
        if constexpr (requires { event.job; }) {
          return event.job;
        } else {
          return 0;
        }
      },
      body);
}

std::string EncodeEvent(const EventBody& body) {
  Packer packer;
  packer.Put(body.index());
  std::visit([&](const auto& event) { packer.out += Pack(event); }, body);
  return std::move(packer.out);
}

Result<EventBody> DecodeEvent(std::string_view bytes) {
  Unpacker in(bytes);
  std::size_t kind = 0;
  in.Get(kind);
  EventBody body;
  if (in.bad() || !UnpackKind(kind, in, body)) {
    return Fail(ErrorCode::kInvalid, "an event of kind " + std::to_string(kind) + " is not known",
                "a newer musterd wrote it: run that one");
  }
  if (in.bad()) {
    return Fail(ErrorCode::kInvalid,
                "an event " + std::string(kKinds[kind]) + " is cut off or damaged");
  }
  return body;
}

DocNode EventToNode(const EventBody& body) {
  DocPacker packer;
  std::visit(
      [&]<typename T>(const T& event) {
        if constexpr (std::is_same_v<T, TokenMade>) {
          TokenMade shown = event;
          shown.hash.clear();
          Fields(packer, shown);
        } else if constexpr (std::is_same_v<T, JobSubmitted>) {
          JobSubmitted shown = event;
          shown.key.clear();  // its sender's alone
          Fields(packer, shown);
        } else if constexpr (std::is_same_v<T, RequestAnswered>) {
          RequestAnswered shown = event;
          shown.key.clear();
          shown.digest.clear();
          shown.answer.clear();
          Fields(packer, shown);
        } else {
          Fields(packer, const_cast<T&>(event));
        }
      },
      body);
  return std::move(packer.out);
}

}  // namespace muster::model
