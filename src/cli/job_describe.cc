// Everything about one job, in sections: what it is, what it asked for, when what happened to it,
// its workers and its last events.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/event_text.h"
#include "cli/job_verbs.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr int kEventsShown = 8;

// "count 2..8, gpus 1, memory 16Gi"; lists with spaces between their items.
std::string Flow(const Json& value, const char* between = " ") {
  if (!value.is_structured()) return Plain(value);
  std::string out;
  for (const auto& [key, child] : value.items()) {
    if (!out.empty()) out += value.is_array() ? " " : ", ";
    if (value.is_object()) out += key + between;
    out += Flow(child);
  }
  return out;
}

// A word as a shell would take it, where it is not plain.
std::string Quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void Line(const std::string& name, const std::string& value) {
  if (!value.empty()) std::cout << "  " << Pad(name, 13) << value << '\n';
}

void Section(const char* title) { std::cout << '\n' << title << '\n'; }

std::string WhenAgo(const Json& object, const char* key) {
  const auto at = TimeMs(object, key);
  return at == 0 ? "" : Clock(at) + "  (" + Ago(WallMs() - at) + " ago)";
}

std::string Pretended(const Json& status) {
  if (status.value("virtual", false)) return "  (its GPUs are virtual)";
  return status.value("simulated", false) ? "  (simulated: its workers only take time)" : "";
}

void Head(const Json& job) {
  const auto& status = job.at("status");
  std::cout << "job " << job.value("id", "") << "  " << job.value("name", "") << '\n';
  Line("phase", Paint(status.value("phase", ""), SheetNow().color) + Pretended(status));
  Line("user", job.value("user", ""));
  Line("queue", job.value("queue", ""));
  Line("kind", job.value("kind", ""));
  if (job.contains("priority")) {
    const auto spec = job.value("spec", Json::object());
    const bool may = spec.value("preemptible", job.value("priority", 0) < 100);
    Line("priority", Plain(job.at("priority")) + (may ? ", preemptible" : ", not preemptible"));
  }
  if (job.contains("array")) {
    Line("array", "task " + Plain(job.at("array_index")) + " of job " + job.value("array", ""));
  }
  Line("labels", Flow(job.value("labels", Json::object()), "="));
}

// "2 GPUs, 4 cores, 16Gi of memory", then whatever else is counted.
std::string Resources(Json asked) {
  std::string out;
  const auto add = [&out](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  const auto take = [&](const char* key, const char* one, const char* many) {
    if (!asked.contains(key)) return;
    const auto amount = Plain(asked.at(key));
    add(amount + " " + (amount == "1" ? one : many));
    asked.erase(key);
  };
  take("gpus", "GPU", "GPUs");
  take("gpu_memory", "of GPU memory", "of GPU memory");
  take("cpus", "core", "cores");
  take("memory", "of memory", "of memory");
  for (const auto& [key, amount] : asked.items()) add(Plain(amount) + " " + key);
  return out.empty() ? "nothing" : out;
}

void Asked(const Json& spec) {
  Section("Asked for");
  const auto roles = spec.value("roles", Json::object());
  for (const auto& [name, role] : roles.items()) {
    const auto types = role.value("gpu_types", Json::array());
    const auto count = Plain(role.value("count", Json(1)));
    Line(name, count + (count == "1" ? " worker with " : " workers, each with ") +
                   Resources(role.value("resources", Json::object())) +
                   (types.empty() ? "" : "; GPU types " + Flow(types)));
  }
  std::string command;
  for (const auto& word : spec.value("command", Json::array())) {
    command += (command.empty() ? "" : " ") + Quoted(Plain(word));
  }
  Line("command", command);
  for (const auto& [key, label] : {std::pair{"workdir", "folder"},
                                   {"image", "image"},
                                   {"framework", "framework"},
                                   {"template", "template"},
                                   {"topology", "topology"},
                                   {"nodes", "nodes"},
                                   {"groups", "groups"},
                                   {"limits", "limits"},
                                   {"checkpoint", "checkpoint"},
                                   {"after", "after"},
                                   {"array", "array"}}) {
    if (spec.contains(key)) Line(label, Flow(spec.at(key)));
  }
  Line("environment", Flow(spec.value("env", Json::object()), "="));
}

std::string ForWhom(const Json& one) {
  if (!one.contains("for_job")) return "";
  return "job " + Plain(one.at("for_job")) +
         (one.contains("for_name")
              ? " (" + one.value("for_user", "") + "'s " + one.value("for_name", "") + ")"
              : "");
}

// "42m, as jobs like it ran; such guesses were off by a factor of 1.60 in the middle of 12"
std::string Expected(const Json& status) {
  if (!status.contains("expected_ms")) return "";
  auto text = Ago(status.value("expected_ms", std::int64_t{0})) + ", as jobs like it ran";
  if (!status.contains("expected_off_by")) return text;
  return fmt::format("{}; such guesses were off by a factor of {:.2f} in the middle of {}", text,
                     status.value("expected_off_by", 1.0), status.value("expected_guesses", 0));
}

void Times(const Session& session, const Json& job) {
  const auto& status = job.at("status");
  Section("Life");
  Line("submitted", WhenAgo(job, "created_at"));
  if (status.contains("started_at")) {
    const auto waited = TimeMs(status, "started_at") - TimeMs(job, "created_at");
    Line("started", Clock(TimeMs(status, "started_at")) + "  (waited " + Ago(waited) + ")");
  }
  if (status.contains("termination")) {
    const auto& end = status.at("termination");
    Line("ended", WhenAgo(end, "at"));
    Line("because", end.value("reason", ""));
  }
  Line("ran", Ago(status.value("ran_ms", std::int64_t{0})));
  Line("expected", Expected(status));
  Line("checkpoint", WhenAgo(status, "checkpoint_at"));
  Line("restarts", Plain(status.value("restarts", Json(0))));
  std::string conditions;
  for (const auto& one : status.value("conditions", Json::array())) {
    if (!one.value("status", false)) continue;
    conditions += (conditions.empty() ? "" : ", ") + one.value("type", "");
  }
  Line("conditions", conditions);
  Rows rows;
  for (const auto& one : status.value("preemptions", Json::array())) {
    rows.push_back({"  " + Clock(TimeMs(one, "at")), one.value("what", ""),
                    Plain(one.value("workers", Json(0))), one.value("rule", ""), ForWhom(one)});
  }
  if (rows.empty()) return;
  Section("Made to leave");
  session.Table({"  TIME", "WHAT", "WORKERS", "RULE", "FOR"}, rows);
}

// "gave back to queue ben, for job 7 (bob's prio)"
std::string WhyResized(const Json& one) {
  const auto what = one.value("what", "");
  const auto queue = one.value("for_queue", "");
  std::string text = what == "shrunk" ? "gave back" : what == "lost" ? "a worker was lost" : what;
  if (!queue.empty()) text += " to queue " + queue;
  if (const auto whom = ForWhom(one); !whom.empty()) {
    text += ", for ";
    text += whom;
  } else if (one.contains("rule")) {
    text += fmt::format(" ({})", one.value("rule", ""));
  }
  return text;
}

void Sizes(const Session& session, const Json& status) {
  Rows rows;
  for (const auto& one : status.value("sizes", Json::array())) {
    rows.push_back({"  " + Clock(TimeMs(one, "at")), Plain(one.at("from")), Plain(one.at("to")),
                    one.contains("pause_ms") ? Plain(one.at("pause_ms")) + " ms" : "",
                    WhyResized(one)});
  }
  if (rows.empty()) return;
  Section("Sizes");
  session.Table({"  TIME", "FROM", "TO", "PAUSE", "WHY"}, rows);
}

std::string EndOf(const Json& worker) {
  if (!worker.contains("exit")) return "";
  const auto& exit = worker.at("exit");
  std::string end = exit.contains("exit_code") ? "exit " + Plain(exit.at("exit_code"))
                    : exit.contains("signal")  ? "signal " + Plain(exit.at("signal"))
                                               : exit.value("failure", "lost");
  if (exit.value("out_of_memory", false)) end += ", out of memory";
  return end;
}

// What the worker said of itself: "step 1200, epoch 3, loss 1.93".
std::string Progress(const Json& report) {
  std::string text;
  for (const char* name : {"step", "epoch", "samples"}) {
    if (report.contains(name))
      text += (text.empty() ? "" : ", ") + (name + (" " + Plain(report[name])));
  }
  const auto numbers = Flow(report.value("numbers", Json::object()));
  return text + (text.empty() || numbers.empty() ? "" : ", ") + numbers;
}

void Workers(const Session& session, const Json& status) {
  Rows rows;
  for (const auto& worker : status.value("workers", Json::array())) {
    const auto gpus = worker.value("gpus", Json::array());
    std::string list;
    for (const auto& gpu : gpus) list += (list.empty() ? "" : ",") + Plain(gpu);
    rows.push_back({"  " + Plain(worker.at("worker")), worker.value("role", ""),
                    worker.value("phase", ""), worker.value("node", ""), list,
                    worker.contains("pid") ? Plain(worker.at("pid")) : "", EndOf(worker),
                    worker.value("limits_kept_by", ""),
                    Progress(worker.value("report", Json::object()))});
  }
  if (rows.empty()) return;
  Section("Workers");
  session.Table({"  WORKER", "ROLE", "PHASE", "NODE", "GPUS", "PID", "EXIT", "LIMITS", "PROGRESS"},
                rows, {"LIMITS", "ROLE", "PID"});
}

void LastEvents(Session& session, const std::string& id) {
  const auto answer =
      session.client().Get("jobs/" + id + "/events", {{"limit", std::to_string(kEventsShown)}});
  if (!answer) return;  // the job itself has been shown
  const auto got = Json::parse(*answer);
  Rows rows;
  for (const auto& event : got.at("events")) {
    rows.push_back({"  " + Clock(TimeMs(event, "at")), event.value("kind", ""), SentenceOf(event)});
  }
  if (rows.empty()) return;
  Section("Last events");
  session.Table({"  TIME", "EVENT", "WHAT"}, rows);
}

}  // namespace

int DescribeJob(Session& session, const std::string& job) {
  return session.Show(session.client().Get("jobs/" + job), [&](const Json& got) {
    const auto& status = got.at("status");
    Head(got);
    if (status.contains("tasks")) {
      Line("tasks", fmt::format("{}: {} active, {} waiting, {} succeeded, {} failed, {} cancelled",
                                status.value("tasks", 0), status.value("active", 0),
                                status.value("waiting", 0), status.value("succeeded", 0),
                                status.value("failed", 0), status.value("cancelled", 0)));
      Line("submitted", WhenAgo(got, "created_at"));
      Asked(got.value("spec", Json::object()));
      return;
    }
    const auto reasons = status.value("reasons", Json::array());
    if (!reasons.empty()) {
      Line("because",
           Plain(reasons.at(0)) + "; `muster why " + got.value("id", "") + "` tells more");
    }
    Asked(got.value("spec", Json::object()));
    Times(session, got);
    Sizes(session, status);
    Workers(session, status);
    LastEvents(session, got.value("id", ""));
  });
}

}  // namespace muster::cli
