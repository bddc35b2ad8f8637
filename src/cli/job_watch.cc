// Watching jobs and acting on them: lists, one job, why it waits.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/job_verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

std::string Number(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string Marks(const Json& status) {
  std::string out;
  if (status.value("virtual", false)) out += " virtual";
  if (status.value("simulated", false)) out += " simulated";
  return out;
}

// Who or what made a job leave: "for ben's claim".
std::string ForWhom(const Json& preemption) {
  if (preemption.contains("for_name")) {
    return "for " + preemption.value("for_user", "") + "'s " + preemption.value("for_name", "");
  }
  if (preemption.contains("for_job")) return "for job " + Number(preemption.at("for_job"));
  const auto rule = preemption.value("rule", "");
  return rule == "drain"   ? "its node is drained"
         : rule == "stale" ? "it was below its minimum"
                           : "by rule " + rule;
}

std::vector<std::string> Row(const Json& job, bool wide) {
  const auto& status = job.at("status");
  const auto now = WallMs();
  std::string workers = std::to_string(status.value("workers_running", 0)) + "/";
  const int least = status.value("workers_min", 0), most = status.value("workers_max", 0);
  workers += least == most ? std::to_string(most) : fmt::format("{}..{}", least, most);
  const auto created = job.value("created_at_ms", std::int64_t{0});
  std::string note;
  if (status.contains("termination")) {
    note = status.at("termination").value("reason", "");
  } else if (status.contains("preemption") && status.value("phase", "") == "paused") {
    note = ForWhom(status.at("preemption"));
  } else {
    note = status.value("note", "");
  }
  std::vector<std::string> row = {job.value("id", ""),
                                  job.value("name", ""),
                                  job.value("user", ""),
                                  job.value("queue", ""),
                                  status.value("phase", ""),
                                  workers,
                                  Number(status.at("gpus")) + Marks(status),
                                  Ago(now - created),
                                  Ago(status.value("ran_ms", std::int64_t{0}))};
  if (wide) {
    row.push_back(std::to_string(job.value("priority", 0)));
    row.push_back(std::to_string(status.value("restarts", 0)));
  }
  row.push_back(note);
  return row;
}

// What the worker said of itself: "step 1200, epoch 3, loss 1.93".
std::string Progress(const Json& report) {
  std::string text;
  const auto add = [&text](const std::string& name, const Json& value) {
    if (!text.empty()) text += ", ";
    text += name;
    text += " ";
    text += Number(value);
  };
  for (const char* name : {"step", "epoch", "samples"}) {
    if (report.contains(name)) add(name, report[name]);
  }
  const Json numbers = report.value("numbers", Json::object());
  for (const auto& [name, value] : numbers.items()) add(name, value);
  return text;
}

}  // namespace

int Ps(Session& session, const ListOptions& options) {
  client::Client::Query query;
  if (options.all) query["all"] = "1";
  if (!options.queue.empty()) query["queue"] = options.queue;
  if (!options.user.empty()) query["user"] = options.user;
  query["limit"] = std::to_string(options.limit);
  for (;;) {
    const auto answer = session.client().Get("jobs", query);
    const int status = session.Show(answer, [&](const Json& got) {
      std::vector<std::string> head = {"ID",      "NAME", "USER", "QUEUE", "PHASE",
                                       "WORKERS", "GPUS", "AGE",  "RAN"};
      if (session.wide()) head.insert(head.end(), {"PRIORITY", "RESTARTS"});
      head.emplace_back("NOTE");
      std::vector<std::vector<std::string>> rows;
      for (const auto& job : got.at("jobs")) rows.push_back(Row(job, session.wide()));
      if (options.watch && ::isatty(STDOUT_FILENO) == 1) std::cout << "\033[H\033[2J";
      PrintTable(head, rows);
      if (rows.empty()) std::cerr << (options.all ? "no jobs\n" : "no jobs wait or run\n");
    });
    if (status != 0 || !options.watch) return status;
    std::cout.flush();
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

int DescribeJob(Session& session, const std::string& job) {
  const auto answer = session.client().Get("jobs/" + job);
  return session.Show(answer, [&](const Json& got) {
    const auto& status = got.at("status");
    const auto line = [](const char* name, const std::string& value) {
      if (!value.empty()) std::cout << fmt::format("{:<12} {}\n", name, value);
    };
    line("job", got.value("id", "") + "  " + got.value("name", ""));
    line("user", got.value("user", ""));
    line("queue", got.value("queue", ""));
    line("phase", status.value("phase", "") + Marks(status));
    if (status.contains("tasks")) {
      line("tasks", fmt::format("{}: {} active, {} waiting, {} succeeded, {} failed, {} cancelled",
                                status.value("tasks", 0), status.value("active", 0),
                                status.value("waiting", 0), status.value("succeeded", 0),
                                status.value("failed", 0), status.value("cancelled", 0)));
      return;
    }
    line("submitted", Clock(got.value("created_at_ms", std::int64_t{0})));
    if (status.contains("started_at_ms")) {
      line("started", Clock(status.value("started_at_ms", std::int64_t{0})));
    }
    line("ran", Ago(status.value("ran_ms", std::int64_t{0})));
    line("restarts", std::to_string(status.value("restarts", 0)));
    if (status.contains("termination")) {
      line("ended", Clock(status.at("termination").value("at_ms", std::int64_t{0})) + ": " +
                        status.at("termination").value("reason", ""));
    }
    for (const auto& one : status.value("preemptions", Json::array())) {
      line(one.value("what", "").c_str(),
           Clock(one.value("at_ms", std::int64_t{0})) + " by rule " + one.value("rule", "") +
               (one.contains("for_job")
                    ? " for job " + Number(one.at("for_job")) + " (" + one.value("for_user", "") +
                          "'s " + one.value("for_name", "") + ")"
                    : ""));
    }
    std::vector<std::vector<std::string>> rows;
    for (const auto& worker : status.value("workers", Json::array())) {
      std::string end;
      if (worker.contains("exit")) {
        const auto& exit = worker.at("exit");
        end = exit.contains("exit_code") ? "exit " + Number(exit.at("exit_code"))
              : exit.contains("signal")  ? "signal " + Number(exit.at("signal"))
                                         : exit.value("failure", "lost");
        if (exit.value("out_of_memory", false)) end += ", out of memory";
      }
      rows.push_back(
          {Number(worker.at("worker")), worker.value("role", ""), worker.value("phase", ""),
           worker.value("node", ""), worker.value("gpus", Json::array()).dump(),
           worker.contains("pid") ? Number(worker.at("pid")) : "", end,
           worker.value("limits_kept_by", ""), Progress(worker.value("report", Json::object()))});
    }
    if (!rows.empty()) {
      std::cout << '\n';
      PrintTable({"WORKER", "ROLE", "PHASE", "NODE", "GPUS", "PID", "EXIT", "LIMITS", "PROGRESS"},
                 rows);
    }
  });
}

int Why(Session& session, const std::string& job) {
  const auto answer = session.client().Get("jobs/" + job + "/explain");
  return session.Show(answer, [](const Json& got) {
    const auto phase = got.value("phase", "");
    const bool runs = phase == "running" || phase == "starting";
    std::cout << got.value("name", "") << " is " << phase << Marks(got) << ": "
              << got.value("sentence", "") << ".\n";
    if (got.contains("share")) {
      const auto& share = got.at("share");
      std::cout << "  share      quota " << Number(share.at("quota")) << ", held "
                << Number(share.at("held")) << ", fair share now " << Number(share.at("fair_share"))
                << "; " << got.value("jobs_ahead", 0) << " jobs ahead in its queue\n";
      std::cout << "  room       " << got.value("fit_now", 0) << " of "
                << got.value("workers_needed", 0) << " workers fit now, "
                << got.value("fit_if_preemptible_work_left", 0)
                << " if all preemptible work left\n";
    }
    if (got.contains("nodes_by_filter")) {
      std::string list;
      for (const auto& [filter, count] : got.at("nodes_by_filter").items()) {
        list += (list.empty() ? "" : ", ") + filter + " " + count.dump();
      }
      if (!list.empty()) std::cout << "  nodes      " << list << '\n';
    }
    if (got.contains("nearest_fit")) {
      const auto& nearest = got.at("nearest_fit");
      std::cout << "  nearest    " << nearest.value("node", "") << ", short of "
                << nearest.value("missing", "");
      if (nearest.value("gpus_missing", 0) > 0) {
        std::cout << " (" << nearest.value("gpus_missing", 0) << ")";
      }
      std::cout << '\n';
    }
    for (const auto& holder : got.value("held_by", Json::array())) {
      std::cout << "  held by    " << holder.value("queue", "") << ": " << Number(holder.at("gpus"))
                << " GPUs, " << holder.value("right", "") << '\n';
    }
    for (const auto& change : got.value("would_start_it", Json::array())) {
      std::cout << "  " << (runs ? "grows if   you " : "starts if  you ")
                << change.get<std::string>() << '\n';
    }
    for (const auto& one : got.value("preemptions", Json::array())) {
      std::cout << "  history    " << Clock(one.value("at_ms", std::int64_t{0})) << " "
                << one.value("what", "") << " by rule " << one.value("rule", "");
      if (one.contains("for_name")) {
        std::cout << " for " << one.value("for_user", "") << "'s " << one.value("for_name", "");
      }
      std::cout << '\n';
    }
  });
}

int Act(Session& session, const std::vector<std::string>& jobs, const std::string& verb,
        const client::Client::Query& query) {
  int status = 0;
  std::string list;
  for (const auto& job : jobs) {
    std::string path = "jobs/";
    path.append(job).append(":").append(verb);
    const auto answer = session.client().Post(path, query, "");
    if (!answer) {
      status = Refuse(answer.error());
      continue;
    }
    list += (list.empty() ? "" : ",") + *answer;
  }
  if (list.empty()) return status;
  const int shown = session.Show("{\"jobs\":[" + list + "]}", [](const Json& got) {
    for (const auto& job : got.at("jobs")) {
      std::cout << "job " << job.value("id", "") << " " << job.value("name", "")
                << (job.contains("phase") ? ": " + job.value("phase", "") : "") << '\n';
    }
  });
  return status != 0 ? status : shown;
}

int Scale(Session& session, const std::string& job, const std::string& workers) {
  const auto dots = workers.find("..");
  const std::string least = workers.substr(0, dots);
  const std::string most = dots == std::string::npos ? least : workers.substr(dots + 2);
  return Act(session, {job}, "scale", {{"min", least}, {"max", most}});
}

int Priority(Session& session, const std::vector<std::string>& jobs, const std::string& priority) {
  std::string value = priority;
  for (const auto& [name, number] : {std::pair{"low", "25"},
                                     {"normal", "50"},
                                     {"high", "75"},
                                     {"build", "100"},
                                     {"critical", "125"}}) {
    if (priority == name) value = number;
  }
  return Act(session, jobs, "priority", {{"value", value}});
}

}  // namespace muster::cli
