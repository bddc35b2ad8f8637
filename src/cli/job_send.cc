// Sending jobs: files are checked here, so that mistakes are shown with their lines.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "cli/enter.h"
#include "cli/job_verbs.h"
#include "cli/text.h"
#include "model/problems.h"
#include "model/spec_codec.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;
using Accepted = nlohmann::ordered_json;  // as the daemon wrote it

Result<std::string> ReadInput(const std::string& file) {
  if (file != "-") return ReadFile(file);
  return ReadStream(std::cin);
}

// A folder that is not named is the one the user is in; a relative one is meant from there.
Result<void> Anchor(model::Job& job) {
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  if (error) {
    return Fail(ErrorCode::kNotFound, "the folder you are in is not there any more",
                "go to one that is, or write `workdir` in the job file");
  }
  job.workdir =
      job.workdir.empty() ? here.string() : (here / job.workdir).lexically_normal().string();
  return {};
}

// A key of our own, so that a request that is sent twice makes one job.
std::string MakeKey() {
  return fmt::format("cli-{}-{}-{}", ::getpid(), SystemClock().MonotonicNs(), WallMs());
}

Accepted AcceptedIn(const std::string& answer, bool dry_run) {
  auto accepted = Accepted::parse(answer).at("jobs");
  for (auto& item : accepted) {
    if (dry_run) item["dry_run"] = true;
  }
  return accepted;
}

// Sends the jobs as one request: all of them are accepted, or none.
Result<Accepted> Send(Session& session, std::vector<model::Job> jobs,
                      const SubmitOptions& options) {
  std::string body = "{\"jobs\": [";
  const char* between = "";
  for (auto& job : jobs) {
    if (auto anchored = Anchor(job); !anchored) return tl::unexpected(anchored.error());
    model::SpecFile one;
    one.kind = model::SpecKind::kJob;
    one.jobs.push_back(std::move(job));
    auto text = model::EncodeSpec(one, model::TextFormat::kJson);
    if (!text) return tl::unexpected(text.error());
    body += std::exchange(between, ",\n");
    body += *text;
  }
  body += "]}";
  client::Client::Query query;
  if (options.held) query["held"] = "1";
  if (options.dry_run) query["dry_run"] = "1";
  const auto answer = session.client().Post("jobs", query, body, MakeKey());
  if (!answer) return tl::unexpected(answer.error());
  return AcceptedIn(*answer, options.dry_run);
}

int ShowAccepted(Session& session, const Accepted& accepted, bool dry_run) {
  if (accepted.empty()) return 0;
  Accepted document;
  document["jobs"] = accepted;
  return session.Show(document.dump(2), [&](const Json& got) {
    for (const auto& item : got.at("jobs")) {
      std::cout << (dry_run ? "would accept " : "job ")
                << (dry_run ? "" : item.value("id", "") + " ") << item.value("name", "")
                << (item.contains("tasks") ? " (" + item["tasks"].dump() + " tasks)" : "")
                << " in queue " << item.value("queue", "") << '\n';
    }
  });
}

// What is wrong with the file is said with its lines.
bool SaySound(const std::string& file, const model::DecodedSpec& decoded) {
  for (const auto& problem : decoded.problems.Sorted()) {
    std::cerr << file << ':' << problem.mark.line << ':' << problem.mark.column << ": "
              << model::Describe(problem) << '\n';
  }
  return !decoded.problems.HasErrors();
}

// Whether the daemon shows the names of the variables only.
bool EnvIsHidden(const Accepted& spec) {
  const auto env = spec.find("env");
  if (env == spec.end() || env->empty()) return false;
  return std::all_of(env->begin(), env->end(), [](const auto& value) { return value == "***"; });
}

}  // namespace

Result<std::string> ReadJob(const std::string& file) {
  auto text = ReadInput(file);
  if (!text) return text;
  auto decoded = model::DecodeSpec(*text);
  if (!SaySound(file, decoded)) {
    return Fail(ErrorCode::kInvalid, file + " is not valid", "repair what is said above");
  }
  if (decoded.spec.jobs.size() != 1) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{} holds {} jobs, not one", file, decoded.spec.jobs.size()),
                "give a file with a single job");
  }
  model::SpecFile one;
  one.kind = model::SpecKind::kJob;
  one.jobs = std::move(decoded.spec.jobs);
  if (auto anchored = Anchor(one.jobs.back()); !anchored) return tl::unexpected(anchored.error());
  return model::EncodeSpec(one, model::TextFormat::kJson);
}

int Submit(Session& session, const SubmitOptions& options) {
  int status = 0;
  std::vector<model::Job> jobs;
  for (const auto& file : options.files) {
    auto text = ReadInput(file);
    if (!text) {
      status = Refuse(text.error());
      continue;
    }
    auto decoded = model::DecodeSpec(*text);
    if (!SaySound(file, decoded)) {
      status = ExitStatus(ErrorCode::kInvalid);
      continue;
    }
    if (decoded.spec.jobs.empty()) {
      status = Refuse({ErrorCode::kInvalid, file + " holds no job",
                       "queues are applied with `muster queue apply`"});
      continue;
    }
    std::move(decoded.spec.jobs.begin(), decoded.spec.jobs.end(), std::back_inserter(jobs));
  }
  if (status != 0) {
    if (options.files.size() > 1) std::cerr << "muster: nothing was submitted\n";
    return status;
  }
  auto accepted = Send(session, std::move(jobs), options);
  if (!accepted) return Refuse(accepted.error());
  return ShowAccepted(session, *accepted, options.dry_run);
}

int Run(Session& session, const RunOptions& asked) {
  RunOptions options = asked;
  options.terminal |=
      options.kind == "build" && options.from_template.empty() && AtTerminal() && !options.detach;
  const auto spec = SpecOf(options);
  if (!spec) return Refuse(spec.error());
  SubmitOptions how;
  how.dry_run = options.dry_run;
  const auto accepted = Send(session, spec->jobs, how);
  if (!accepted) return Refuse(accepted.error());
  const bool array = !options.array.empty();
  if (array && !options.detach && !options.dry_run) {
    std::cerr << "an array is not watched; `muster wait " << accepted->at(0).value("id", "")
              << "` waits for all of it\n";
  }
  if (options.detach || options.dry_run || array) {
    return ShowAccepted(session, *accepted, options.dry_run);
  }
  const auto id = accepted->at(0).at("id").get<std::string>();
  return Attend(session, id,
                options.terminal && AtTerminal() ? Joined::kTerminal : Joined::kOutput);
}

// The same job once more. What is hidden of it cannot be copied.
int Clone(Session& session, const std::string& job, const std::string& name, bool dry_run) {
  const auto answer = session.client().Get("jobs/" + job);
  if (!answer) return Refuse(answer.error());
  const auto found = Accepted::parse(*answer);
  if (!found.contains("spec")) {
    return Refuse({ErrorCode::kInvalid, "an array cannot be cloned", "submit its file again"});
  }
  auto spec = found.at("spec");
  if (!name.empty()) spec["name"] = name;
  if (EnvIsHidden(spec)) {
    std::string hidden;
    for (const auto& [key, value] : spec.at("env").items()) hidden += " " + key;
    spec.erase("env");
    std::cerr << Clean("muster: job " + found.value("id", "") + " is " + found.value("user", "") +
                       "'s: its environment is hidden from you and was not copied:" + hidden)
              << '\n';
  }
  client::Client::Query query;
  if (dry_run) query["dry_run"] = "1";
  auto sent = session.client().Post("jobs", query, spec.dump(), MakeKey());
  if (!sent) return Refuse(sent.error());
  return ShowAccepted(session, AcceptedIn(*sent, dry_run), dry_run);
}

}  // namespace muster::cli
