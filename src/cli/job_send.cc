// Sending jobs: files are checked here, so that mistakes are shown with their lines.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "cli/job_verbs.h"
#include "model/problems.h"
#include "model/spec_codec.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

Result<std::string> ReadInput(const std::string& file) {
  if (file != "-") return ReadFile(file);
  return ReadStream(std::cin);
}

// A folder that is not named is the one the user is in; a relative one is meant from there.
void Anchor(model::Job& job) {
  const auto here = std::filesystem::current_path();
  job.workdir =
      job.workdir.empty() ? here.string() : (here / job.workdir).lexically_normal().string();
}

// A key of our own, so that a request that is sent twice makes one job.
std::string MakeKey() {
  return fmt::format("cli-{}-{}-{}", ::getpid(), SystemClock().MonotonicNs(), WallMs());
}

int SendSpec(Session& session, const model::SpecFile& spec, const SubmitOptions& options) {
  int status = 0;
  for (const auto& job : spec.jobs) {
    model::SpecFile one;
    one.kind = model::SpecKind::kJob;
    one.jobs.push_back(job);
    Anchor(one.jobs.back());
    auto text = model::EncodeSpec(one, model::TextFormat::kJson);
    if (!text) return Refuse(text.error());
    client::Client::Query query;
    if (options.held) query["held"] = "1";
    if (options.dry_run) query["dry_run"] = "1";
    const auto answer = session.client().Post("jobs", query, *text, MakeKey());
    const int shown = session.Show(answer, [&](const Json& got) {
      for (const auto& item : got["jobs"]) {
        std::cout << (options.dry_run ? "would accept " : "job ")
                  << (options.dry_run ? "" : item.value("id", "") + " ") << item.value("name", "")
                  << (item.contains("tasks")
                          ? " (" + std::to_string(item["tasks"].get<int>()) + " tasks)"
                          : "")
                  << " in queue " << item.value("queue", "") << '\n';
      }
    });
    if (shown != 0) status = shown;
  }
  return status;
}

}  // namespace

int Submit(Session& session, const SubmitOptions& options) {
  int status = 0;
  for (const auto& file : options.files) {
    auto text = ReadInput(file);
    if (!text) return Refuse(text.error());
    const auto decoded = model::DecodeSpec(*text);
    for (const auto& problem : decoded.problems.Sorted()) {
      std::cerr << file << ':' << problem.mark.line << ':' << problem.mark.column << ": "
                << model::Describe(problem) << '\n';
    }
    if (decoded.problems.HasErrors()) {
      status = ExitStatus(ErrorCode::kInvalid);
      continue;
    }
    if (decoded.spec.jobs.empty()) {
      status = Refuse({ErrorCode::kInvalid, file + " holds no job",
                       "queues are applied with `muster queue apply`"});
      continue;
    }
    if (const int sent = SendSpec(session, decoded.spec, options); sent != 0) status = sent;
  }
  return status;
}

int Run(Session& session, const RunOptions& options) {
  Json job = {{"queue", options.queue}, {"kind", options.kind}, {"command", options.command}};
  std::string name = options.name;
  if (name.empty()) {
    name = std::filesystem::path(options.command.front()).filename().string();
    for (char& c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '-';
    }
  }
  job["name"] = name;
  const auto put = [&job](const char* key, const std::string& value) {
    if (!value.empty()) job[key] = value;
  };
  const auto number = [&job](const char* key, const std::string& value) {
    if (!value.empty()) job[key] = Json::parse(value, nullptr, false);
    if (job.contains(key) && job[key].is_discarded()) job[key] = value;
  };
  number("gpus", options.gpus == "0" ? "" : options.gpus);
  number("cpus", options.cpus);
  put("memory", options.memory);
  number("workers", options.workers);
  number("priority", options.priority);
  put("framework", options.framework);
  put("image", options.image);
  if (!options.time.empty()) job["limits"] = {{"time", options.time}};
  const auto decoded = model::DecodeSpec(job.dump());
  if (decoded.problems.HasErrors()) return Refuse(model::ToError(decoded.problems));
  if (options.detach) return SendSpec(session, decoded.spec, {});
  model::SpecFile spec = decoded.spec;
  Anchor(spec.jobs.front());
  auto text = model::EncodeSpec(spec, model::TextFormat::kJson);
  if (!text) return Refuse(text.error());
  const auto answer = session.client().Post("jobs", {}, *text, MakeKey());
  if (!answer) return Refuse(answer.error());
  const auto id = Json::parse(*answer)["jobs"][0].value("id", "");
  std::cerr << "job " << id << "; Ctrl-C leaves it running\n";
  LogOptions logs;
  logs.job = id;
  logs.follow = true;
  if (const int shown = Logs(session, logs); shown != 0) return shown;
  return Wait(session, {id}, "done", 0);
}

}  // namespace muster::cli
