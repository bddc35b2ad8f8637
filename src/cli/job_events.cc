// What happened: events of one job or of all, the last ones or as they come.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/event_text.h"
#include "cli/job_verbs.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;  // as the daemon wrote it

constexpr std::chrono::milliseconds kLookAgain(100);

struct Page {
  std::vector<Json> events;
  std::uint64_t last = 0;  // the revision up to which they were looked at
};

// Those behind `since`, oldest first; 0: the last ones, in the order that was asked for.
Result<Page> Ask(Session& session, const EventOptions& options, std::uint64_t since) {
  const auto& chosen = options.selection;
  client::Client::Query query{{"filter", chosen.filter}, {"sort", chosen.sort}};
  if (!options.cycles) {
    query["filter"] += std::string(chosen.filter.empty() ? "" : ",") + "kind!=cycle-ran";
  }
  if (since > 0) query["since"] = std::to_string(since);
  // The pages of the last ones begin at the end, so they are asked for newest first.
  if (chosen.sort.empty()) query["sort"] = since > 0 ? "revision" : "-revision";
  if (query["filter"].empty()) query.erase("filter");
  const auto answer =
      AllPages(session.client(), options.job.empty() ? "events" : "jobs/" + options.job + "/events",
               query, since > 0 ? 0 : chosen.limit);
  if (!answer) return tl::unexpected(answer.error());
  auto got = Json::parse(*answer);
  Page page{got.at("events").get<std::vector<Json>>(), got.value("revision", since)};
  if (chosen.sort.empty() && since == 0) std::reverse(page.events.begin(), page.events.end());
  for (const auto& event : page.events) {
    page.last = std::max(page.last, event.value("revision", std::uint64_t{0}));
  }
  return page;
}

int Print(Session& session, const Page& page, bool follow) {
  if (follow && session.output() == Output::kName) {
    for (const auto& event : page.events) std::cout << Plain(event.at("revision")) << '\n';
    return 0;
  }
  if (follow && session.output() == Output::kYaml) {  // a document each
    for (const auto& event : page.events) session.Show(event.dump(), [](const nlohmann::json&) {});
    return 0;
  }
  if (follow && !session.for_people()) {  // no document has an end: one object a line
    for (const auto& event : page.events) std::cout << SafeJson(event.dump()) << '\n';
    return 0;
  }
  Json document;
  document["events"] = page.events;
  return session.Show(document.dump(2), [&](const nlohmann::json& got) {
    const auto columns = session.wide() ? 0 : SheetNow().columns;
    for (const auto& event : got.at("events")) {
      const auto& facts = event.at("facts");
      std::string line = session.wide() ? Pad(Plain(event.at("revision")), 8) + " " : "";
      line += Clock(TimeMs(event, "at")) + "  " + Pad(event.value("kind", ""), 19) + " ";
      if (facts.contains("job")) line += Pad("job " + Plain(facts.at("job")), 9);
      line += SentenceOf(event);
      std::cout << (columns > 0 ? Cut(line, columns) : line) << '\n';
    }
  });
}

}  // namespace

int Events(Session& session, const EventOptions& options) {
  if (options.follow && !options.selection.sort.empty()) {
    return Refuse({ErrorCode::kUsage, "events -f come in the order in which they happen",
                   "leave out --sort, or -f"});
  }
  if (options.follow) session.Persist();
  for (auto page = Ask(session, options, 0);; page = Ask(session, options, page->last)) {
    if (!page) return Refuse(page.error());
    const int status = Print(session, *page, options.follow);
    std::cout.flush();
    if (status != 0 || !options.follow || !std::cout.good()) return status;
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace muster::cli
