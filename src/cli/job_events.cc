// What happened: events of one job or of all, the last ones or as they come.
#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/job_verbs.h"
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

// The last `limit` events; those left out do not count, so the daemon may have to be asked for
// more.
Result<Page> AskLast(Session& session, const EventOptions& options) {
  for (auto limit = options.limit;; limit = std::min(4 * limit, kMostEvents)) {
    auto page = Ask(session, options, limit, 0);
    if (!page) return page;
    const auto wanted = static_cast<std::size_t>(options.limit);
    if (page->events.size() < wanted && page->full && limit < kMostEvents) continue;
    if (page->events.size() > wanted) {
      page->events.erase(page->events.begin(), page->events.end() - options.limit);
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
      line += FactsOf(event);
      std::cout << (columns > 0 ? Cut(line, columns) : line) << '\n';
    }
  });
}

// A bit for each GPU, as numbers: "0,1".
std::string Devices(const nlohmann::json& bits) {
  std::string out;
  for (auto mask = bits.get<std::uint64_t>(); mask != 0; mask &= mask - 1) {
    out += (out.empty() ? "" : ",") + std::to_string(std::countr_zero(mask));
  }
  return out;
}

}  // namespace

std::string FactsOf(const nlohmann::json& event) {
  std::string out;
  const std::function<void(const nlohmann::json&)> add = [&](const nlohmann::json& facts) {
    for (const auto& [key, value] : facts.items()) {
      const bool known = key == "job" || key == "spec" || key.ends_with("_ms") || key == "uid" ||
                         key == "gid" || key == "launch";
      const bool none = value == 0 && (key == "cause" || key == "pid" || key == "signal" ||
                                       key == "max_rss_bytes");
      const bool blank = value.is_string() && value.get_ref<const std::string&>().empty();
      if (known || none || blank || value == false || value == -1 || value == "none") {
        continue;
      }
      if (value.is_object()) {
        add(value);
        continue;
      }
      const auto said = key == "devices" ? Devices(value) : Plain(value);
      if (said.empty()) continue;
      if (!out.empty()) out += ", ";
      out += key == "devices" ? "gpus" : key;
      if (value != true) out += " " + said;
    }
  };
  add(event.at("facts"));
  return out;
}

int Events(Session& session, const EventOptions& options) {
  const auto output = session.output();
  if (options.follow && output == Output::kYaml) {
    return Refuse({ErrorCode::kUsage, "events -f has no end, and so no YAML document",
                   "-o json prints one object a line"});
  }
  EventOptions wanted = options;
  wanted.cycles = options.cycles || session.wide();
  auto page = AskLast(session, wanted);
  for (;;) {
    if (!page) return Refuse(page.error());
    const int status = Print(session, *page, options.follow);
    std::cout.flush();
    if (status != 0 || !options.follow || !std::cout.good()) return status;
    if (!page->full || page->last == 0 || !options.job.empty()) {
      std::this_thread::sleep_for(kLookAgain);
    }
    page = Ask(session, wanted, kAtATime, page->last);
  }
}

}  // namespace muster::cli
