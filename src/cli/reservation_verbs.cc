// Reservations: capacity that admins keep for a time.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/moment.h"
#include "cli/options.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kLongestMs = 3650LL * 86'400'000;
constexpr const char* kFromRule = "write it as 2026-11-20T09:00, as +2h from now on, or now";

struct Words {
  std::string name, queue, type, nodes, from = "now", lasts, about;
  std::int64_t gpus = 0;
  bool nobody = false, dry_run = false;

  client::Client::Query Query() const {
    client::Client::Query query;
    if (dry_run) query["dry_run"] = "1";
    return query;
  }
};

std::string Joined(const Json& list) {
  std::string out;
  for (const auto& one : list) out += (out.empty() ? "" : ",") + Plain(one);
  return out;
}

int List(Session& session) {
  return session.Show(session.List("reservations"), [&](const Json& got) {
    Rows rows;
    for (const auto& one : got.at("reservations")) {
      const auto& spec = one.at("spec");
      const auto& status = one.at("status");
      rows.push_back({one.value("name", ""), spec.value("queue", "(nobody)"),
                      status.value("phase", ""), Clock(TimeMs(spec, "from")),
                      Clock(TimeMs(spec, "to")), Plain(spec.at("gpus")),
                      Plain(status.at("used_by_queue")), Plain(status.at("gpus_free"))});
      if (session.wide()) {
        rows.back().push_back(Joined(spec.at("nodes")));
        rows.back().push_back(status.value("set_by", ""));
      }
      const auto mark = Mark(one), about = spec.value("about", "");
      rows.back().push_back(mark.empty() || about.empty() ? mark + about
                                                          : fmt::format("{}, {}", mark, about));
    }
    std::vector<std::string> head = {"NAME", "QUEUE", "STATE", "FROM",
                                     "TO",   "GPUS",  "USED",  "FREE"};
    if (session.wide()) head.insert(head.end(), {"NODES", "BY"});
    head.emplace_back("NOTE");
    session.Table(head, rows, {"NOTE", "FREE", "USED"});
  });
}

Result<Json> BodyOf(const Words& words) {
  const auto now_ms = WallMs();
  const auto from_ms = ParseMoment(words.from, now_ms);
  if (!from_ms) {
    return Fail(ErrorCode::kUsage, "--from: \"" + words.from + "\" is no moment", kFromRule);
  }
  const auto lasts_ms = ParseDurationMs(words.lasts);
  if (!lasts_ms || *lasts_ms <= 0 || *lasts_ms > kLongestMs) {
    return Fail(ErrorCode::kUsage, "--for: \"" + words.lasts + "\" is no time that it could last",
                "write it as 4h or 2d, at most 3650d");
  }
  if (words.queue.empty() != words.nobody) {
    return Fail(ErrorCode::kUsage, "it must be said for whom it is",
                "either --queue QUEUE, or --nobody to keep everybody out");
  }
  if (words.gpus == 0 && words.nodes.empty()) {
    return Fail(ErrorCode::kUsage, "it must be said what to reserve",
                "--gpus 8, with --type H100 where that matters, or --nodes a,b");
  }
  Json body = {{"name", words.name}, {"to", FormatTimeMs(*from_ms + *lasts_ms)}};
  if (words.from != "now") body["from"] = FormatTimeMs(*from_ms);
  if (!words.queue.empty()) body["queue"] = words.queue;
  if (words.gpus > 0) body["gpus"] = words.gpus;
  if (!words.type.empty()) body["gpu_type"] = words.type;
  if (!words.about.empty()) body["about"] = words.about;
  for (std::size_t at = 0; at < words.nodes.size();) {
    const auto comma = std::min(words.nodes.find(',', at), words.nodes.size());
    body["nodes"].push_back(words.nodes.substr(at, comma - at));
    at = comma + 1;
  }
  return body;
}

int Create(Session& session, const Words& words) {
  const auto body = BodyOf(words);
  if (!body) return Refuse(body.error());
  const auto text = body->dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto answer = session.client().Post("reservations", words.Query(), text);
  return session.Show(answer, [&](const Json& got) {
    const auto& spec = got.at("spec");
    const auto gpus = spec.value("gpus", 0);
    std::cout << fmt::format("{} {} on {} {} from {} to {}\n",
                             words.dry_run ? "would reserve" : "reserved", Count(gpus, "GPU"),
                             Clean(Joined(spec.at("nodes"))),
                             spec.contains("queue") ? "for " + Clean(spec.value("queue", ""))
                                                    : std::string("for nobody"),
                             Clock(TimeMs(spec, "from")), Clock(TimeMs(spec, "to")));
  });
}

int Delete(Session& session, const Words& words, bool yes) {
  const auto sure = Confirm("Delete reservation " + words.name + "?", yes || words.dry_run);
  if (!sure) return Refuse(sure.error());
  if (!*sure) {
    std::cerr << "nothing was deleted\n";
    return 1;
  }
  const auto answer = session.client().Delete("reservations/" + words.name, words.Query());
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(*answer), [&](const Json& got) {
    std::cout << (words.dry_run ? "would delete" : "deleted") << " reservation "
              << got.value("name", "") << '\n';
  });
}

}  // namespace

void AddReservationVerbs(Verbs& verbs) {
  CLI::App* group = verbs.Group("reservation", "GPUs that admins keep for a time");
  auto w = std::make_shared<Words>();
  verbs.IsList(verbs.Add(group, "list", "Those that are to come, and those that stand",
                         "muster reservation list\nmuster reservation list --filter phase=active",
                         List));
  auto* create =
      verbs.Add(group, "create", "Keep GPUs for a queue, or from everybody, for a time",
                "muster reservation create demo --queue vision --gpus 8 --from +2h --for 4h\n"
                "muster reservation create repair --nobody --nodes lab-7 --from +1d --for 8h",
                [w](Session& s) { return Create(s, *w); });
  AddOption(create, "NAME", w->name, "its name").Required().NameOf("reservation");
  AddOption(create, "--queue", w->queue, "whose jobs may use it, with those below").NameOf("queue");
  AddFlag(create, "--nobody", w->nobody, "for no queue: everybody is kept out");
  AddOption(create, "--gpus", w->gpus, "how many; whole nodes are taken first")
      .Between(1, 1'000'000);
  AddOption(create, "--type", w->type, "only nodes with GPUs of this type");
  AddOption(create, "--nodes", w->nodes, "only these: a,b; without --gpus all of theirs");
  AddOption(create, "--from", w->from,
            "2026-11-20T09:00 in local time, with a Z in UTC; +2h; default now");
  AddOption(create, "--for", w->lasts, "how long: 4h or 2d").Required();
  AddOption(create, "--about", w->about, "what it is for");
  AddFlag(create, "--dry-run", w->dry_run, "check everything and change nothing");
  verbs.Changes(create);
  auto* remove = verbs.Add(group, "delete", "Take one back; what it kept is everybody's again",
                           "muster reservation delete demo --yes",
                           [w, &verbs](Session& s) { return Delete(s, *w, verbs.common().yes); });
  AddOption(remove, "RESERVATION", w->name, "its name").Required().NameOf("reservation");
  AddFlag(remove, "--dry-run", w->dry_run, "check everything and change nothing");
  verbs.Changes(remove, "do not ask");
}

}  // namespace muster::cli
