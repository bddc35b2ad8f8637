#include "api/watch.h"

#include <algorithm>

#include "control/views.h"
#include "model/fields.h"

namespace muster::api {

using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;

namespace {

constexpr std::int64_t kDefaultLimit = 200;
constexpr int kKeepAliveMs = 15'000;
constexpr std::size_t kReplayed = 100'000;  // events that a stream may begin with

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
         std::holds_alternative<model::TokenRevoked>(body);
}

bool MaySee(const state::State& state, const Access& access, const state::Record& record,
            const model::EventBody& body) {
  if (access.IsAdmin()) return true;
  if (IsAboutPeople(body)) return false;
  if (record.job == 0) return !std::holds_alternative<model::UseNoted>(body);
  if (const auto* job = state.Find(record.job)) return access.Sees(job->user, job->spec->queue);
  if (const auto* array = state.FindArray(record.job)) {
    return access.Sees(array->user, array->spec->queue);
  }
  return false;  // forgotten: nobody knows whose it was
}

bool Wanted(const std::string& kinds, std::string_view kind) {
  return kinds.empty() || kinds.find("," + std::string(kind) + ",") != std::string::npos;
}

std::string Frame(std::uint64_t revision, std::string_view kind, const std::string& json) {
  std::string text = "id: " + std::to_string(revision) + "\nevent: ";
  text += kind;
  text += "\ndata: ";
  // One line: what the writer put on several is joined.
  for (const char c : json) {
    if (c != '\n') text += c;
  }
  text += "\n\n";
  return text;
}

std::string KeyOf(const control::Caller& caller) {
  std::string key = caller.user + "\n" + std::to_string(static_cast<int>(caller.cap)) +
                    (caller.is_root ? "r" : "");
  for (const auto& group : caller.groups) key += "\n" + group;
  return key;
}

}  // namespace

void Watch::Events(const Call& call) {
  const auto* accept = call.request->Find("Accept");
  const bool stream = call.Flag("watch") ||
                      (accept != nullptr && accept->find("text/event-stream") != std::string::npos);
  if (!stream) {
    return desk_.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
      const std::string kinds = call.Text("kinds").empty() ? "" : "," + call.Text("kinds") + ",";
      state::RecordQuery query;
      query.after = static_cast<std::uint64_t>(call.Number("since", 0));
      query.limit = static_cast<std::size_t>(call.Number("limit", kDefaultLimit));
      query.latest = call.Text("since").empty();
      DocNode list = ListNode();
      auto read = control.store().Read(query, [&](const state::Record& record) -> Result<void> {
        auto body = model::DecodeEvent(record.body);
        if (!body) return tl::unexpected(body.error());
        if (Wanted(kinds, model::KindOf(*body)) && MaySee(control.state(), access, record, *body)) {
          list.children.push_back(control::RecordView(record, *body));
        }
        return {};
      });
      if (!read) return tl::unexpected(read.error());
      DocNode node = MapNode();
      Put(node, "events", std::move(list));
      Put(node, "revision", NumberNode(static_cast<std::int64_t>(control.state().revision())));
      return node;
    });
  }
  const auto* last = call.request->Find("Last-Event-ID");
  const auto behind =
      last != nullptr ? model::ParseWhole(*last) : model::ParseWhole(call.Text("since"));
  desk_.Begin(
      call, [this, call, behind](Controller& control, const Access& access) -> Result<void> {
        const auto now = control.state().revision();
        return Begin(
            control, access, call,
            behind && *behind >= 0 ? std::min(static_cast<std::uint64_t>(*behind), now) : now);
      });
}

Result<void> Watch::Begin(Controller& control, const Access& access, const Call& call,
                          std::uint64_t since) {
  const std::string kinds = call.Text("kinds").empty() ? "" : "," + call.Text("kinds") + ",";
  // From the store, on the thread that writes to it: what follows comes by Written().
  std::string missed;
  std::uint64_t at = since;
  if (since < control.state().revision()) {
    state::RecordQuery query;
    query.after = since;
    query.limit = kReplayed + 1;
    std::size_t count = 0;
    auto read = control.store().Read(query, [&](const state::Record& record) -> Result<void> {
      ++count;
      if (at == since && record.revision != since + 1) count = kReplayed + 1;
      at = record.revision;
      auto body = model::DecodeEvent(record.body);
      if (!body) return tl::unexpected(body.error());
      const auto kind = model::KindOf(*body);
      if (Wanted(kinds, kind) && MaySee(control.state(), access, record, *body)) {
        missed +=
            Frame(record.revision, kind, model::WriteJson(control::RecordView(record, *body)));
      }
      return {};
    });
    if (!read) return read;
    if (count > kReplayed) {
      Error error{
          ErrorCode::kNotFound,
          "events behind revision " + std::to_string(since) + " are too old or too many to be sent",
          "list again, then watch from the revision of that list"};
      error.path = "since";
      return tl::unexpected(std::move(error));
    }
  }
  call.exchange->BeginStream(200, "text/event-stream", {{"Cache-Control", "no-store"}});
  call.exchange->Write(": muster\n\n" + missed);
  auto& group = groups_[KeyOf(access.caller())];
  if (group.access == nullptr) {
    group.caller = access.caller();
    group.access = std::make_unique<Access>(control.state(), group.caller);
    group.access_at = rights_at_;
  }
  group.watchers.push_back({call.exchange, kinds});
  ++watchers_;
  if (!ticking_) {
    ticking_ = true;
    desk_.server->After(kKeepAliveMs, [this] { KeepAlive(); });
  }
  return {};
}

// A comment now and then, so that both ends notice when the other has gone.
void Watch::KeepAlive() {
  desk_.service().Read([this](Controller&) {
    std::vector<std::shared_ptr<net::Exchange>> to;
    watchers_ = 0;
    for (auto& [key, group] : groups_) {
      std::erase_if(group.watchers, [](const auto& one) { return one.exchange->gone(); });
      for (const auto& one : group.watchers) to.push_back(one.exchange);
      watchers_ += group.watchers.size();
    }
    std::erase_if(groups_, [](const auto& entry) { return entry.second.watchers.empty(); });
    ticking_ = watchers_ > 0;
    if (!ticking_) return;
    desk_.server->Post([to = std::move(to)] {
      for (const auto& exchange : to) exchange->Write(": still here\n\n");
    });
    desk_.server->After(kKeepAliveMs, [this] { KeepAlive(); });
  });
}

void Watch::Written(const Controller& control, std::span<const state::Record> records) {
  if (watchers_ == 0) return;
  struct Event {
    std::string kind, frame;
  };
  struct Delivery {
    std::shared_ptr<net::Exchange> exchange;
    std::shared_ptr<const std::string> text;
  };
  std::vector<Event> events;
  std::vector<model::EventBody> bodies;
  std::vector<const state::Record*> sources;
  for (const auto& record : records) {
    auto body = model::DecodeEvent(record.body);
    if (!body) continue;
    if (ChangesRights(*body)) rights_at_ = record.revision;
    const auto kind = std::string(model::KindOf(*body));
    events.push_back(
        {kind, Frame(record.revision, kind, model::WriteJson(control::RecordView(record, *body)))});
    bodies.push_back(std::move(*body));
    sources.push_back(&record);
  }
  std::vector<Delivery> deliveries;
  for (auto& [key, group] : groups_) {
    if (group.access_at != rights_at_) {
      group.access = std::make_unique<Access>(control.state(), group.caller);
      group.access_at = rights_at_;
    }
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (MaySee(control.state(), *group.access, *sources[i], bodies[i])) seen.push_back(i);
    }
    std::map<std::string, std::shared_ptr<const std::string>> by_kinds;
    for (const auto& one : group.watchers) {
      auto& text = by_kinds[one.kinds];
      if (text == nullptr) {
        std::string joined;
        for (const auto i : seen) {
          if (Wanted(one.kinds, events[i].kind)) joined += events[i].frame;
        }
        text = std::make_shared<const std::string>(std::move(joined));
      }
      if (!text->empty()) deliveries.push_back({one.exchange, text});
    }
  }
  if (deliveries.empty()) return;
  desk_.server->Post([deliveries = std::move(deliveries)] {
    for (const auto& [exchange, text] : deliveries) {
      // One that does not read would miss something: it is cut off and begins anew where it was.
      if (!exchange->Write(*text)) exchange->Finish();
    }
  });
}

}  // namespace muster::api
