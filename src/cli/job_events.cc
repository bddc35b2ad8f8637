// What happened: events of one job or of all, the last ones or as they come.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/event_text.h"
#include "cli/job_verbs.h"
#include "cli/select.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;  // as the daemon wrote it

constexpr std::chrono::milliseconds kLookAgain(100);
constexpr std::int64_t kMostEvents = 10'000;  // of one answer
constexpr std::int64_t kAtATime = 1000;

struct Page {
  std::vector<Json> events;
  std::uint64_t last = 0;  // revision, of those left out too
  bool full = false;       // there may be more
};

Result<Page> Ask(Session& session, const EventOptions& options, std::int64_t limit,
                 std::uint64_t since) {
  client::Client::Query query{{"limit", std::to_string(limit)}};
  if (options.job.empty() && since > 0) query["since"] = std::to_string(since);
  const auto answer = session.client().Get(
      options.job.empty() ? "events" : "jobs/" + options.job + "/events", query);
  if (!answer) return tl::unexpected(answer.error());
  const auto got = Json::parse(*answer);
  const auto& events = got.at("events");
  Page page;
  page.last = since;
  page.full = static_cast<std::int64_t>(events.size()) >= limit;
  for (const auto& event : events) {
    const auto revision = event.value("revision", std::uint64_t{0});
    if (revision <= since) continue;
    page.last = std::max(page.last, revision);
    if (options.cycles || event.value("kind", "") != "cycle-ran") page.events.push_back(event);
  }
  return page;
}

// Only those that the filter wants; on a later page nothing may have what it asks for.
Result<void> Choose(Page& page, const EventOptions& options, bool first) {
  if (options.selection.filter.empty()) return {};
  Selection filter;
  filter.filter = options.selection.filter;
  Json list = page.events;
  if (auto done = Select(list, filter); !done) {
    if (first) return done;
    list = Json::array();
  }
  page.events = std::move(list).get<std::vector<Json>>();
  return {};
}

// The last `limit` events; those left out do not count, so the daemon may have to be asked for
// more. With --sort the limit is for those that are sorted to the front.
Result<Page> AskLast(Session& session, const EventOptions& options) {
  const auto& selection = options.selection;
  const bool all = !selection.filter.empty() || !selection.sort.empty();
  for (auto limit = all ? kMostEvents : selection.limit;;
       limit = std::min(4 * limit, kMostEvents)) {
    auto page = Ask(session, options, limit, 0);
    if (!page) return page;
    if (auto chosen = Choose(*page, options, true); !chosen) return tl::unexpected(chosen.error());
    const auto wanted = static_cast<std::size_t>(selection.limit);
    if (page->events.size() < wanted && page->full && limit < kMostEvents) continue;
    if (page->events.size() > wanted && selection.sort.empty()) {
      page->events.erase(page->events.begin(), page->events.end() - selection.limit);
    }
    return page;
  }
}

int Print(Session& session, const Page& page, bool follow) {
  if (follow && !session.for_people()) {  // no document has an end: one object a line
    for (const auto& event : page.events) std::cout << SafeJson(event.dump()) << '\n';
    return 0;
  }
  Json document;
  document["events"] = page.events;
  return session.Show(document.dump(2), [](const nlohmann::json& got) {
    const auto columns = SheetNow().columns;
    for (const auto& event : got.at("events")) {
      const auto& facts = event.at("facts");
      std::string line = Clock(TimeMs(event, "at")) + "  " + Pad(event.value("kind", ""), 17) + " ";
      if (facts.contains("job")) line += Pad("job " + Plain(facts.at("job")), 9);
      line += SentenceOf(event);
      std::cout << (columns > 0 ? Cut(line, columns) : line) << '\n';
    }
  });
}

}  // namespace

int Events(Session& session, const EventOptions& options) {
  const auto output = session.output();
  if (options.follow && output == Output::kYaml) {
    return Refuse({ErrorCode::kUsage, "events -f has no end, and so no YAML document",
                   "-o json prints one object a line"});
  }
  if (options.follow && !options.selection.sort.empty()) {
    return Refuse({ErrorCode::kUsage, "events -f come in the order in which they happen",
                   "leave out --sort, or -f"});
  }
  EventOptions wanted = options;
  wanted.cycles = options.cycles || session.wide();
  Session all(session.target(), output);  // --limit is for what has happened, not for what comes
  auto page = AskLast(session, wanted);
  for (;;) {
    if (!page) return Refuse(page.error());
    const int status = Print(options.follow ? all : session, *page, options.follow);
    std::cout.flush();
    if (status != 0 || !options.follow || !std::cout.good()) return status;
    if (!page->full || page->last == 0 || !options.job.empty()) {
      std::this_thread::sleep_for(kLookAgain);
    }
    page = Ask(session, wanted, kAtATime, page->last);
    if (page) static_cast<void>(Choose(*page, wanted, false));
  }
}

}  // namespace muster::cli
