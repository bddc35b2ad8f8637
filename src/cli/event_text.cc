#include "cli/event_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/session.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostNamed = 6;  // of a list in a sentence

std::string Text(const Json& facts, const char* key) {
  const auto found = facts.find(key);
  if (found == facts.end() || found->is_null() || found->is_structured()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::int64_t Number(const Json& facts, const char* key, std::int64_t otherwise = 0) {
  const auto found = facts.find(key);
  return found != facts.end() && found->is_number() ? found->get<std::int64_t>() : otherwise;
}

bool Flag(const Json& facts, const char* key) {
  const auto found = facts.find(key);
  return found != facts.end() && found->is_boolean() && found->get<bool>();
}

Json Part(const Json& facts, const char* key) {
  const auto found = facts.find(key);
  return found != facts.end() ? *found : Json();
}

std::string By(const Json& facts) {
  const auto who = Text(facts, "by");
  return who.empty() ? "" : " by " + who;
}

// "a, b and 3 more".
std::string Named(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < kMostNamed; ++i) {
    if (i > 0) out += ", ";
    out += names[i];
  }
  if (names.size() > kMostNamed) out += fmt::format(" and {} more", names.size() - kMostNamed);
  return out;
}

// "GPU 2 of " or "GPUs 0,1 of "; nothing where there are none.
std::string Devices(const Json& facts) {
  const auto gpus = Part(facts, "devices");
  if (!gpus.is_array() || gpus.empty()) return "";
  std::string list;
  for (const auto& gpu : gpus) {
    if (!list.empty()) list += ",";
    list += gpu.dump();
  }
  return fmt::format("GPU{} {} of ", gpus.size() == 1 ? "" : "s", list);
}

std::string NodeJoined(const Json& facts) {
  const auto node = Part(facts, "node");
  if (!node.is_object()) return "a node joined";
  std::map<std::string, int> types;
  for (const auto& gpu : node.value("gpus", Json::array())) ++types[Text(gpu, "type")];
  std::string has;
  for (const auto& [type, count] : types) {
    has += fmt::format("{} {}, ", count, type.empty() ? (count == 1 ? "GPU" : "GPUs") : type);
  }
  const auto cores = Number(node, "cpu_milli") / 1000;
  return fmt::format("node {} joined pool {}: {}{}, {} of memory", Text(node, "name"),
                     Text(node, "pool"), has, Count(cores, "core"),
                     FormatBytes(Number(node, "memory_bytes")));
}

std::string NodeMarked(const Json& facts) {
  const char* what = Flag(facts, "draining")   ? "is being drained"
                     : Flag(facts, "cordoned") ? "is cordoned"
                                               : "is used again";
  return fmt::format("node {} {}{}", Text(facts, "node"), what,
                     By(facts).empty() ? "" : "," + By(facts));
}

std::string QueuesApplied(const Json& facts) {
  std::vector<std::string> names;
  for (const auto& queue : facts.value("queues", Json::array())) {
    names.push_back(Text(queue, "name"));
  }
  return fmt::format("the queues were changed{}: {}", By(facts),
                     names.empty() ? "there are none" : Named(names));
}

std::string JobSubmitted(const Json& facts) {
  const auto spec = Part(facts, "spec");
  std::string out = "submitted";
  if (const auto user = Text(facts, "user"); !user.empty()) out += " by " + user;
  if (spec.is_object() && !Text(spec, "queue").empty()) out += " to queue " + Text(spec, "queue");
  std::vector<std::string> behind;
  for (const auto& one : facts.value("follows", Json::array())) {
    behind.push_back("job " + Text(one, "job"));
  }
  return behind.empty() ? out : out + ", to follow " + Named(behind);
}

std::string ExitText(const Json& exit) {
  if (!exit.is_object()) return "ended";
  if (const auto failure = Text(exit, "failure"); !failure.empty()) {
    return "could not be started: " + failure;
  }
  if (Flag(exit, "lost")) return "was lost: nobody saw how it ended";
  std::string out = Number(exit, "signal") != 0
                        ? fmt::format("was ended by signal {}", Number(exit, "signal"))
                        : fmt::format("exited with {}", Number(exit, "exit_code", -1));
  if (Flag(exit, "oom")) out += ", out of memory";
  if (Flag(exit, "stopped")) out += ", as it was told to";
  return out;
}

std::string Worker(const Json& facts) { return fmt::format("worker {}", Number(facts, "worker")); }

std::string JobEnded(const Json& facts) {
  const auto end = Text(facts, "end"), why = Text(facts, "why");
  if (why.empty() || why == "none") {
    return end == "succeeded"
               ? end
               : fmt::format("{}: {} {}", end, Worker(facts), ExitText(Part(facts, "exit")));
  }
  return why == end ? end : fmt::format("{}: {}", end, WhyText(why));
}

std::string WorkerLeaving(const Json& facts) {
  std::string out = fmt::format("{} leaves: {}", Worker(facts), WhyText(Text(facts, "why")));
  const auto why = Text(facts, "why");
  if (why == "paused" || why == "shrunk" || why == "moved") {
    out += fmt::format(", rule {}", Text(facts, "rule"));
  }
  if (const auto cause = Text(facts, "cause"); !cause.empty() && cause != "0") {
    out += fmt::format(", for job {}", cause);
  }
  if (const auto lost = Number(facts, "lost_gpu_ms", -1); lost > 0) {
    out += fmt::format("; {} of GPU time are lost", FormatDurationMs(lost));
  }
  return out;
}

std::string WorkerPlaced(const Json& facts) {
  const auto what = Text(facts, "action");
  return fmt::format("{} {} {}node {}{}", Worker(facts), what == "grow" ? "joins on" : "gets",
                     Devices(facts).empty() && what != "grow" ? "a place on " : Devices(facts),
                     Text(facts, "node"), Flag(facts, "again") ? ", where it was" : "");
}

std::string UserSet(const Json& facts) {
  std::vector<std::string> groups;
  for (const auto& one : facts.value("groups", Json::array())) {
    groups.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  }
  return fmt::format("user {} has role {}{}{}", Text(facts, "name"), Text(facts, "role"),
                     groups.empty() ? "" : " and groups " + Named(groups),
                     By(facts).empty() ? "" : "," + By(facts));
}

std::string TokenMade(const Json& facts) {
  const auto end = Number(facts, "expires_ms");
  return fmt::format("token {} ({}) was made for {}{}{}", Text(facts, "id"), Text(facts, "name"),
                     Text(facts, "user"), By(facts), end == 0 ? "; it never expires" : "");
}

std::string PolicyApplied(const Json& facts) {
  std::vector<std::string> settings;
  const auto stated = Part(facts, "settings");
  if (stated.is_object()) {
    for (const auto& [name, value] : stated.items()) {
      settings.push_back(name + " " + Text(stated, name.c_str()));
    }
  }
  const auto undoes = Text(facts, "undoes"), name = Text(facts, "name");
  return fmt::format("policy {}{}: {}",
                     undoes.empty() || undoes == "0" ? (name.empty() ? "" : name + " ") + "applied"
                                                     : undoes + " undone",
                     By(facts), settings.empty() ? "as by default" : Named(settings));
}

std::string UseNoted(const Json& facts) {
  const auto use = Part(facts, "gpu_ms");
  std::vector<std::string> queues;
  if (use.is_object()) {
    for (const auto& [queue, gpu_ms] : use.items()) {
      queues.push_back(
          fmt::format("{} {:.2f} GPU-hours", queue, static_cast<double>(gpu_ms) / 3'600'000));
    }
  }
  return "what queues have used lately: " + (queues.empty() ? "nothing" : Named(queues));
}

std::string JobIdle(const Json& facts) {
  const auto idle = FormatDurationMs(Number(facts, "idle_ms") / 1000 * 1000);
  return Number(facts, "released_at_ms") == 0
             ? "is used again"
             : "is idle for " + idle + ", and will be released unless it is used";
}

std::string JobRequeued(const Json& facts) {
  const auto why = WhyText(Text(facts, "why"));
  return "goes back to its queue" + (why.empty() ? "" : ": " + why) +
         (Flag(facts, "counts") ? "; this counts as a retry" : "");
}

std::string JobStopping(const Json& facts) {
  const auto why = Text(facts, "why");
  return "is told to stop" + (why.empty() || why == "none" ? "" : ": " + WhyText(why)) + By(facts);
}

std::string ReservationSet(const Json& facts) {
  const auto one = Part(facts, "reservation");
  const auto queue = Text(one, "queue");
  std::int64_t gpus = 0;
  for (const auto& part : Part(one, "parts")) gpus += Number(part, "gpus");
  return fmt::format("reservation {} was set{}: {} GPUs for {} from {} to {}", Text(one, "name"),
                     By(facts), gpus, queue.empty() ? "nobody" : queue,
                     Clock(Number(one, "from_ms")), Clock(Number(one, "to_ms")));
}

std::string ReservationRemoved(const Json& facts) {
  const auto name = "reservation " + Text(facts, "name");
  return Text(facts, "why") == "over" ? name + " is over" : name + " was taken back" + By(facts);
}

// A kind that is not known here: its plain facts.
std::string Others(const Json& facts) {
  std::string out;
  for (const auto& [key, value] : facts.items()) {
    if (key == "job" || key == "key" || key == "hash" || value.is_structured()) continue;
    if (!out.empty()) out += ", ";
    out += key + " " + Text(facts, key.c_str());
  }
  return out;
}

using Teller = std::string (*)(const Json&);
struct Kind {
  std::string_view name;
  Teller tell;
};
constexpr std::array kKinds = {
    Kind{"daemon-started",
         [](const Json& f) { return "the daemon started, version " + Text(f, "version"); }},
    Kind{"node-joined", NodeJoined},
    Kind{"node-went",
         [](const Json& f) {
           const auto why = Text(f, "why");
           return "node " + Text(f, "node") + (Flag(f, "up") ? " is up" : " is down") +
                  (why.empty() ? "" : ": " + why);
         }},
    Kind{"node-marked", NodeMarked},
    Kind{"queues-applied", QueuesApplied},
    Kind{"job-submitted", JobSubmitted},
    Kind{"job-held", [](const Json& f) { return (Flag(f, "on") ? "held" : "released") + By(f); }},
    Kind{"job-changed",
         [](const Json& f) {
           return "changed" + By(f) + (Text(f, "what").empty() ? "" : ": " + Text(f, "what")) +
                  (Flag(f, "once_stopped") ? ", once it has stopped" : "");
         }},
    Kind{"job-stopping", JobStopping},
    Kind{"job-resumed", [](const Json& f) { return "resumed" + By(f); }},
    Kind{"job-requeued", JobRequeued},
    Kind{"job-ended", JobEnded},
    Kind{"cycle-ran",
         [](const Json& f) {
           return fmt::format("the scheduler looked at everything in {} steps{}",
                              Number(f, "steps"), Flag(f, "complete") ? "" : ", and is not done");
         }},
    Kind{"worker-placed", WorkerPlaced},
    Kind{"worker-leaving", WorkerLeaving},
    Kind{"worker-started",
         [](const Json& f) {
           const auto pid = Number(f, "pid");
           return Worker(f) + " runs" + (pid == 0 ? "" : " as process " + std::to_string(pid));
         }},
    Kind{"worker-ended", [](const Json& f) { return Worker(f) + " " + ExitText(Part(f, "exit")); }},
    Kind{"checkpoint-taken",
         [](const Json& f) {
           const auto step = Number(f, "step", -1);
           return "a checkpoint was taken" + (step < 0 ? "" : " at step " + std::to_string(step));
         }},
    Kind{"job-resized",
         [](const Json& f) {
           return fmt::format("{} workers from here on; the change took {} ms",
                              Number(f, "workers"), Number(f, "pause_ms"));
         }},
    Kind{"speed-reported",
         [](const Json& f) {
           const auto speed = Part(f, "speed");
           const auto type = Text(speed, "gpu_type");
           return fmt::format("a step took {} ms on {} GPUs{}", Number(speed, "step_us") / 1000,
                              Number(speed, "gpus"), type.empty() ? "" : " of type " + type);
         }},
    Kind{"use-noted", UseNoted},
    Kind{"policy-applied", PolicyApplied},
    Kind{"numbers-skipped",
         [](const Json& f) {
           return "the end of the journal was lost; new jobs are numbered from " + Text(f, "next") +
                  " on";
         }},
    Kind{"user-set", UserSet},
    Kind{"user-removed",
         [](const Json& f) {
           return "user " + Text(f, "name") + " was removed with its tokens" + By(f);
         }},
    Kind{"token-made", TokenMade},
    Kind{"token-revoked",
         [](const Json& f) { return "token " + Text(f, "id") + " was revoked" + By(f); }},
    Kind{"job-idle", JobIdle},
    Kind{"reservation-set", ReservationSet},
    Kind{"reservation-removed", ReservationRemoved}};

}  // namespace

std::string WhyText(std::string_view why) {
  struct Word {
    std::string_view why, said;
  };
  constexpr std::array kWords = {Word{"none", ""},
                                 Word{"paused", "paused by the scheduler"},
                                 Word{"shrunk", "the job goes on with fewer workers"},
                                 Word{"moved", "it has another place in sight"},
                                 Word{"time-limit", "its time was over"},
                                 Word{"idle-limit", "it was idle for too long"},
                                 Word{"member-failed", "another worker has failed"},
                                 Word{"member-done", "the worker that does the work is done"},
                                 Word{"regrouped", "the gang changed its size"},
                                 Word{"never-started", "its pool did not start it in time"},
                                 Word{"dependency", "a job it was to follow ended otherwise"}};
  for (const auto& word : kWords) {
    if (word.why == why) return std::string(word.said);
  }
  return std::string(why);
}

std::string TellStart(const nlohmann::json& estimate) {
  constexpr std::int64_t kMinuteMs = 60'000;
  const auto about = [](std::int64_t ms) {  // as exact as it is sure
    const auto unit = ms < 30 * kMinuteMs ? kMinuteMs : 5 * kMinuteMs;
    return FormatDurationMs(std::max(unit, (ms + unit / 2) / unit * unit));
  };
  if (estimate.contains("never")) return "never start, as things are";
  const auto likely = about(estimate.value("likely_ms", std::int64_t{0}));
  if (estimate.value("reserved", false))
    return "start in " + likely + ": room is kept for it from then on";
  if (!estimate.contains("by_ms")) {
    return "start likely in " + likely +
           ", by how long jobs run; too few have waited to say how sure";
  }
  return "start likely in " + likely + ", nine times out of ten within " +
         about(estimate.value("by_ms", std::int64_t{0}));
}

Explained TellWhy(const std::string& who, const nlohmann::json& explanation) {
  constexpr std::string_view kEnded = "it has ended: ";
  const auto phase = explanation.value("phase", "");
  auto sentence = explanation.value("sentence", "");
  if (sentence.starts_with(kEnded)) sentence.erase(0, kEnded.size());
  const bool has = phase == "succeeded" || phase == "failed";
  Explained out{fmt::format("{} {} ", who,
                            has                    ? "has"
                            : phase == "cancelled" ? "was"
                                                   : "is"),
                phase, ": " + sentence};
  // What the phase says already is not said again.
  const auto again = fmt::format("it is {}; ", phase);
  if (sentence.starts_with(again)) out.after = "; " + sentence.substr(again.size());
  return out;
}

std::string SentenceOf(const nlohmann::json& event) {
  const auto kind = event.value("kind", "");
  const auto facts = event.value("facts", Json::object());
  for (const auto& one : kKinds) {
    if (one.name == kind) return one.tell(facts);
  }
  return Others(facts);
}

}  // namespace muster::cli
