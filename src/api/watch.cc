#include "api/watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "api/record_list.h"
#include "api/reservations.h"
#include "control/views.h"
#include "model/fields.h"

namespace muster::api {

namespace {

constexpr int kKeepAliveMs = 15'000;
constexpr std::size_t kReplayed = 100'000;                 // events that a stream may begin with
constexpr std::size_t kPiece = 1'000;                      // of them in one go
constexpr std::size_t kAheadBytes = std::size_t{1} << 20;  // unread, then it waits
constexpr int kAheadMs = 20;
constexpr int kPaceMs = 25;
constexpr std::size_t kMostChoices = 16;  // of kinds, by one caller at a time

bool ChangesRights(const model::EventBody& body) {
  return std::holds_alternative<model::QueuesApplied>(body) ||
         std::holds_alternative<model::UserSet>(body) ||
         std::holds_alternative<model::UserRemoved>(body) ||
         std::holds_alternative<model::TokenRevoked>(body);
}

bool IsAboutPeople(const model::EventBody& body) {
  return std::holds_alternative<model::UserSet>(body) ||
         std::holds_alternative<model::UserRemoved>(body) ||
         std::holds_alternative<model::TokenMade>(body) ||
         std::holds_alternative<model::TokenRevoked>(body) ||
         std::holds_alternative<model::RequestAnswered>(body);
}

bool MaySee(const state::State& state, const Access& access, const state::Record& record,
            const model::EventBody& body) {
  if (access.IsAdmin()) return true;
  if (IsAboutPeople(body)) return false;
  // Tells of the whole tree: for those who may see all of it.
  if (const auto* applied = std::get_if<model::QueuesApplied>(&body)) {
    return std::all_of(applied->queues.begin(), applied->queues.end(), [&](const auto& queue) {
      return access.On(queue.name) >= control::Role::kViewer;
    });
  }
  if (const auto* set = std::get_if<model::ReservationSet>(&body)) {
    return SeesReservation(access, set->reservation.queue);
  }
  if (const auto* removed = std::get_if<model::ReservationRemoved>(&body)) {
    return SeesReservation(access, removed->queue);
  }
  if (record.job == 0) return !std::holds_alternative<model::UseNoted>(body);
  if (!record.user.empty()) return access.Sees(record.user, record.queue);
  if (const auto* job = state.Find(record.job)) return access.Sees(job->user, job->spec->queue);
  if (const auto* array = state.FindArray(record.job)) {
    return access.Sees(array->user, array->spec->queue);
  }
  return false;  // forgotten: nobody knows whose it was
}

bool Listed(const std::string& kinds, std::string_view kind) {
  return kinds.empty() || kinds.find("," + std::string(kind) + ",") != std::string::npos;
}

// ",a,b,": each once and in order, so that who wants the same is served alike.
std::string KindsOf(const Call& call) {
  const auto text = call.Text("kinds");
  if (text.empty()) return "";
  std::set<std::string, std::less<>> kinds;
  for (std::size_t from = 0; from <= text.size();) {
    const auto comma = std::min(text.find(',', from), text.size());
    kinds.insert(text.substr(from, comma - from));
    from = comma + 1;
  }
  return fmt::format(",{},", fmt::join(kinds, ","));
}

std::string Frame(std::uint64_t revision, std::string_view kind, const std::string& json) {
  std::string text = "id: " + std::to_string(revision) + "\nevent: ";
  text += kind;
  text += "\ndata: ";
  text += json;
  text += "\n\n";
  return text;
}

Result<std::uint64_t> NextRevision(Controller& control, std::uint64_t after) {
  state::RecordQuery query;
  query.after = after;
  query.limit = 1;
  std::uint64_t next = 0;
  auto read = control.store().Read(query, [&next](const state::Record& record) -> Result<void> {
    next = record.revision;
    return {};
  });
  if (!read) return tl::unexpected(read.error());
  return next;
}

std::string KeyOf(const control::Caller& caller) {
  std::string key = caller.user + "\n" + std::to_string(static_cast<int>(caller.cap)) +
                    (caller.is_root ? "r" : "");
  for (const auto& group : caller.groups) {
    key += '\n';
    key += group;
  }
  return key;
}

}  // namespace

// A stream that is still behind.
struct Watch::Replay {
  Call call;
  std::string kinds;
  std::uint64_t at = 0;  // what it has seen
};

void Watch::Events(const Call& call) {
  const auto* accept = call.request->Find("Accept");
  const bool stream = call.Flag("watch") ||
                      (accept != nullptr && accept->find("text/event-stream") != std::string::npos);
  if (!stream) {
    return ListRecords(desk_, call, [call](Controller& control, const Access& access) {
      const auto kinds = KindsOf(call);
      return RecordsOf{0, [&control, access, kinds](const auto& record, const auto& body) {
                         const bool shown = Listed(kinds, model::KindOf(body)) &&
                                            MaySee(control.state(), access, record, body);
                         return shown ? std::optional(control::RecordView(record, body))
                                      : std::nullopt;
                       }};
    });
  }
  for (const char* name : {"limit", "cursor", "filter", "sort", "fields"}) {
    if (call.Text(name).empty()) continue;
    const auto what = std::string("a stream takes no `") + name + "`";
    return ReplyError(*call.exchange, {ErrorCode::kUsage, what, "it takes kinds and since", name});
  }
  const auto* last = call.request->Find("Last-Event-ID");
  const auto behind =
      last != nullptr ? model::ParseWhole(*last) : model::ParseWhole(call.Text("since"));
  if (last != nullptr && (!behind || *behind < 0)) {
    return ReplyError(*call.exchange, {ErrorCode::kUsage, "Last-Event-ID is no revision",
                                       "send the id of the last event", "Last-Event-ID"});
  }
  auto replay = std::make_shared<Replay>();
  replay->call = call;
  replay->kinds = KindsOf(call);
  desk_.Begin(
      call, [this, replay, behind](Controller& control, const Access& access) -> Result<void> {
        if (!HasRoom(access, replay->kinds)) {
          return tl::unexpected(
              Error{ErrorCode::kUnavailable,
                    fmt::format("you watch {} different choices of kinds already", kMostChoices),
                    "end one of those streams, or watch all kinds", "kinds"});
        }
        const auto now = control.state().revision();
        replay->at = static_cast<std::uint64_t>(behind.value_or(static_cast<std::int64_t>(now)));
        if (replay->at != now) {
          auto first = NextRevision(control, replay->at);
          if (!first) return tl::unexpected(first.error());
          // One that is ahead of us has seen another journal than this one.
          const bool lost = replay->at > now || now - replay->at > kReplayed;
          if (lost || *first != replay->at + 1) {
            Error error{ErrorCode::kNotFound,
                        "events behind revision " + std::to_string(replay->at) +
                            " are not here, or too many to be sent",
                        "list again, then watch from the revision of that list"};
            error.path = "since";
            return tl::unexpected(std::move(error));
          }
        }
        replay->call.exchange->BeginStream(200, "text/event-stream",
                                           {{"Cache-Control", "no-store"}});
        // The head is all that is asked for, and there is no end to wait for.
        if (replay->call.request->method == "HEAD") {
          replay->call.exchange->Finish();
          return {};
        }
        replay->call.exchange->SetEndless();
        replay->call.exchange->Write(": muster\n\n");
        Catch(replay, control);
        return {};
      });
}

// One piece of what it missed, from the store on the thread that writes to it. When nothing is
// missing any more, what follows comes by Written().
void Watch::Catch(const std::shared_ptr<Replay>& replay, Controller& control) {
  auto& exchange = *replay->call.exchange;
  const auto access = Admit(control, replay->call);
  if (!access) return exchange.Abort();
  if (replay->at >= control.state().revision()) return Join(*replay, *access);
  state::RecordQuery query;
  query.after = replay->at;
  query.limit = kPiece;
  std::string missed;
  auto read = control.store().Read(query, [&](const state::Record& record) -> Result<void> {
    if (record.revision != replay->at + 1) return Fail(ErrorCode::kNotFound, "a gap");
    replay->at = record.revision;
    auto body = model::DecodeEvent(record.body);
    if (!body) return tl::unexpected(body.error());
    const auto kind = model::KindOf(*body);
    if (Listed(replay->kinds, kind) && MaySee(control.state(), *access, record, *body)) {
      missed +=
          Frame(record.revision, kind, model::WriteJsonLine(control::RecordView(record, *body)));
    }
    return {};
  });
  // Compacted away meanwhile, or not to be read: it comes back and is told.
  if (!read || !exchange.Write(std::move(missed))) return exchange.Abort();
  desk_.server()->Post([this, replay] { GoOn(replay); });
}

// When the reader has room for more.
void Watch::GoOn(const std::shared_ptr<Replay>& replay) {
  if (replay->call.exchange->gone()) return;
  if (replay->call.exchange->Queued() > kAheadBytes) {
    return desk_.server()->After(kAheadMs, [this, replay] { GoOn(replay); });
  }
  desk_.service().Read([this, replay](Controller& control) { Catch(replay, control); });
}

void Watch::Group::Forget() {
  for (auto& [kinds, stream] : streams) {
    std::erase_if(stream.watchers, [](const auto& one) { return one->over(); });
  }
  std::erase_if(streams, [](const auto& entry) { return entry.second.watchers.empty(); });
}

bool Watch::HasRoom(const Access& access, const std::string& kinds) {
  const auto group = groups_.find(KeyOf(access.caller()));
  if (group == groups_.end() || group->second.streams.contains(kinds)) return true;
  if (group->second.streams.size() >= kMostChoices) group->second.Forget();
  return group->second.streams.size() < kMostChoices;
}

void Watch::Join(const Replay& replay, const Access& access) {
  if (!HasRoom(access, replay.kinds)) return replay.call.exchange->Abort();
  auto& group = groups_[KeyOf(access.caller())];
  if (group.access == nullptr) {
    group.caller = access.caller();
    group.access = std::make_unique<Access>(access);
    group.access_at = rights_at_;
  }
  Send();  // what waits is older than where this one begins
  group.streams[replay.kinds].watchers.push_back(replay.call.exchange);
  ++watchers_;
  // One whose groups have changed comes back, and is then of another group here.
  desk_.Keep(replay.call, replay.call.exchange,
             [key = KeyOf(access.caller())](Controller&, const Access& now) {
               return KeyOf(now.caller()) == key;
             });
  if (!std::exchange(ticking_, true)) {
    desk_.server()->After(kKeepAliveMs, [this] { KeepAlive(); });
  }
}

// A comment now and then, so that both ends notice when the other has gone.
void Watch::KeepAlive() {
  desk_.service().Read([this](Controller&) {
    const auto comment = std::make_shared<const std::string>(": still here\n\n");
    std::vector<Delivery> deliveries;
    for (auto& [key, group] : groups_) {
      group.Forget();
      for (const auto& [kinds, stream] : group.streams) {
        for (const auto& one : stream.watchers) deliveries.push_back({one, comment});
      }
    }
    std::erase_if(groups_, [](const auto& entry) { return entry.second.streams.empty(); });
    const auto count = deliveries.size();
    watchers_ = count;
    ticking_ = count > 0;
    if (!ticking_) return;
    fan_out_->Send(*desk_.server(), std::move(deliveries));
    desk_.server()->After(kKeepAliveMs, [this] { KeepAlive(); });
  });
}

void Watch::Written(const Controller& control, std::span<const Event> events) {
  for (const auto& event : events) {
    if (ChangesRights(event.body)) rights_at_ = event.record->revision;
  }
  if (watchers_ == 0) return;
  std::vector<std::string> frames(events.size());
  const auto frame = [&](std::size_t i) -> const std::string& {
    const auto& [record, body] = events[i];
    if (frames[i].empty()) {
      frames[i] = Frame(record->revision, model::KindOf(body),
                        model::WriteJsonLine(control::RecordView(*record, body)));
    }
    return frames[i];
  };
  for (auto& [key, group] : groups_) {
    if (group.access_at != rights_at_) {
      group.access = std::make_unique<Access>(control.state(), control.members(), group.caller);
      group.access_at = rights_at_;
    }
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto& [record, body] = events[i];
      if (!MaySee(control.state(), *group.access, *record, body)) continue;
      for (auto& [kinds, stream] : group.streams) {
        if (Listed(kinds, model::KindOf(body))) stream.waiting += frame(i);
      }
    }
  }
  if (!pacing_) Send();
}

// Hands over what waits, and lets what comes meanwhile wait for the next pace.
void Watch::Send() {
  std::vector<Delivery> deliveries;
  for (auto& [key, group] : groups_) {
    group.Forget();
    for (auto& [kinds, stream] : group.streams) {
      if (stream.waiting.empty()) continue;
      const auto text = std::make_shared<const std::string>(std::exchange(stream.waiting, {}));
      for (const auto& one : stream.watchers) deliveries.push_back({one, text});
    }
  }
  if (deliveries.empty()) return;
  fan_out_->Send(*desk_.server(), std::move(deliveries));
  if (std::exchange(pacing_, true)) return;
  desk_.server()->After(kPaceMs, [this] {
    desk_.service().Read([this](Controller&) {
      pacing_ = false;
      Send();
    });
  });
}

}  // namespace muster::api
