#include "cli/top_feed.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "cli/job_verbs.h"
#include "cli/screen.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kPage = 1'000;
constexpr std::int64_t kMostJobs = 10'000;
constexpr std::size_t kMostOneByOne = 50;
constexpr std::size_t kMostLogLines = 2'000;
constexpr int kLogTail = 200;
constexpr std::chrono::milliseconds kTogether(200);
constexpr std::chrono::seconds kTryAgain(1);

TopJob JobOf(const Json& got) {
  const auto& status = got.at("status");
  TopJob job;
  job.id = std::stoll(got.value("id", "0"));
  job.name = got.value("name", "");
  job.user = got.value("user", "");
  job.queue = got.value("queue", "");
  job.phase = status.value("phase", "");
  const auto asked = GpusAsked(status);
  const char* key = asked.empty() ? "gpus" : "gpus_asked";
  job.asks = !asked.empty();
  job.gpus = job.asks ? asked : status.contains(key) ? Plain(status.at(key)) : "";
  job.gpu_milli = status.contains(key) && status.at(key).is_number()
                      ? static_cast<std::int64_t>(status.at(key).get<double>() * 1000)
                      : 0;
  job.created_ms = TimeMs(got, "created_at");
  job.ran_ms = status.value("ran_ms", std::int64_t{0});
  job.asked_ms = WallMs();
  job.ended = status.contains("termination");
  const auto reasons = status.value("reasons", Json::array());
  if (job.ended) {
    job.note = status.at("termination").value("reason", "");
  } else if (!reasons.empty()) {
    job.note = reasons.at(0).get<std::string>();
  }
  return job;
}

Result<void> LookAtNodes(client::Client& client, TopLook& look) {
  const auto answer = AllPages(client, "nodes", {{"fields", "spec.gpus,status"}});
  if (!answer) return tl::unexpected(answer.error());
  std::map<std::string, TopGpus> types;
  bool mixed = false;
  const auto all = Json::parse(*answer);
  for (const auto& node : all.at("nodes")) {
    ++look.nodes;
    const auto& status = node.at("status");
    look.nodes_ready += status.value("phase", "") == "ready" ? 1 : 0;
    const auto gpus = node.at("spec").value("gpus", Json::object());
    mixed |= gpus.size() > 1;
    for (const auto& [type, count] : gpus.items()) {
      auto& one = types[type];
      one.type = type;
      one.total += count.get<std::int64_t>();
      one.held += gpus.size() == 1 ? status.value("gpus_in_use", std::int64_t{0}) : 0;
      one.is_virtual |= status.value("virtual", false);
    }
  }
  if (mixed) {  // which of them are held only the GPUs themselves tell
    const auto each = AllPages(client, "gpus", {{"fields", "spec.type,status.phase"}});
    if (!each) return tl::unexpected(each.error());
    for (auto& [type, one] : types) one.held = 0;
    const auto list = Json::parse(*each);
    for (const auto& gpu : list.at("gpus")) {
      const auto type = gpu.at("spec").value("type", "");
      const bool held = gpu.at("status").value("phase", "") == "held";
      types[type.empty() ? "gpu" : type].held += held ? 1 : 0;
    }
  }
  for (auto& [type, one] : types) look.gpus.push_back(std::move(one));
  return {};
}

Result<void> LookAtJobs(client::Client& client, TopLook& look) {
  client::Client::Query query{{"limit", std::to_string(kPage)}};
  for (;;) {
    const auto answer = client.Get("jobs", query);
    if (!answer) return tl::unexpected(answer.error());
    const auto page = Json::parse(*answer);
    // The first page's: a watch from there on misses nothing.
    if (look.revision == 0) look.revision = page.value("revision", std::uint64_t{0});
    for (const auto& job : page.at("jobs")) {
      look.jobs.push_back(JobOf(job));
      look.job_texts.push_back(job.dump());
    }
    const auto next = page.value("next", "");
    look.more = !next.empty();
    if (next.empty() || static_cast<std::int64_t>(look.jobs.size()) >= kMostJobs) return {};
    query["cursor"] = next;
  }
}

}  // namespace

Result<TopLook> LookAtAll(client::Client& client) {
  TopLook look;
  if (auto jobs = LookAtJobs(client, look); !jobs) return tl::unexpected(jobs.error());
  if (auto nodes = LookAtNodes(client, look); !nodes) return tl::unexpected(nodes.error());
  if (const auto version = client.Get("version")) {
    look.version = Json::parse(*version).value("version", "");
  }
  return look;
}

void Apply(TopLook look, TopModel& model) {
  model.Replace(std::move(look.jobs));
  model.gpus = std::move(look.gpus);
  model.nodes = look.nodes;
  model.nodes_ready = look.nodes_ready;
  model.revision = std::max(model.revision, look.revision);
  if (!look.version.empty()) model.version = look.version;
  model.more = look.more;
  model.fault.clear();
}

// Held by every thread, so that the last one to end lets go of it.
struct TopFeed::Shared {
  client::Target target;
  std::function<void()> wake;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::vector<std::function<void(TopModel&)>> news;
  std::set<std::string> dirty;  // jobs
  bool nodes_dirty = false;
  bool list_dirty = false;
  int log = 0;  // number of the log that is followed; another one ends the thread
  std::vector<std::string> log_lines;
  bool log_changed = false;

  void Push(std::function<void(TopModel&)> what) {
    const std::lock_guard lock(mutex);
    if (over) return;
    news.push_back(std::move(what));
    wake();
  }
  void Fault(const std::string& why) {
    Push([why](TopModel& model) { model.fault = why; });
  }
  bool Over() {
    const std::lock_guard lock(mutex);
    return over;
  }

  void Watch();
  void Hear(std::string_view frame);
  bool FollowEvents(client::Client& client, std::uint64_t since);
  void Fetch();
  void Renew(client::Client& client, const std::set<std::string>& ids, bool nodes, bool all);
  void ReadLog(std::int64_t job, bool err, int number);
  void AddLog(std::string_view bytes, std::string& line, int number);
};

// A whole event of the stream: "id: 7\nevent: job-ended\ndata: {...}".
void TopFeed::Shared::Hear(std::string_view frame) {
  std::string data;
  while (!frame.empty()) {
    const auto end = frame.find('\n');
    const auto line = frame.substr(0, end);
    if (line.starts_with("data: ")) data = line.substr(6);
    if (end == std::string_view::npos) break;
    frame.remove_prefix(end + 1);
  }
  if (data.empty()) return;
  const auto event = Json::parse(data, nullptr, false);
  if (!event.is_object()) return;
  const auto kind = event.value("kind", "");
  const auto revision = event.value("revision", std::uint64_t{0});
  const auto facts = event.value("facts", Json::object());
  const std::lock_guard lock(mutex);
  news.emplace_back([revision](TopModel& model) { model.revision = revision; });
  if (facts.contains("job")) dirty.insert(Plain(facts.at("job")));
  nodes_dirty |= kind.starts_with("worker-") || kind.starts_with("node-");
  list_dirty |= kind == "job-submitted" && facts.value("spec", Json::object()).contains("array");
  changed.notify_one();
  wake();
}

// False: it is over.
bool TopFeed::Shared::FollowEvents(client::Client& client, std::uint64_t since) {
  std::string bytes;
  const auto streamed = client.Stream(
      "events", {{"watch", "1"}, {"since", std::to_string(since)}}, [&](std::string_view more) {
        bytes += more;
        for (auto end = bytes.find("\n\n"); end != std::string::npos; end = bytes.find("\n\n")) {
          Hear(std::string_view(bytes).substr(0, end));
          bytes.erase(0, end + 2);
        }
        return !Over();
      });
  if (Over()) return false;
  Fault("connection lost" + (streamed ? std::string() : ": " + streamed.error().message));
  return true;
}

void TopFeed::Shared::Watch() {
  while (!Over()) {
    client::Client client(target);
    try {
      auto look = LookAtAll(client);
      if (look) {
        const auto since = look->revision;
        Push([found = std::move(*look)](TopModel& model) { Apply(found, model); });
        if (!FollowEvents(client, since)) return;
      } else {
        Fault(look.error().message);
      }
    } catch (const std::exception& error) {
      Fault(fmt::format("an answer that cannot be read: {}", error.what()));
    }
    std::this_thread::sleep_for(kTryAgain);
  }
}

void TopFeed::Shared::Renew(client::Client& client, const std::set<std::string>& ids, bool nodes,
                            bool all) {
  if (all || ids.size() > kMostOneByOne) {
    auto look = LookAtAll(client);
    if (look) Push([found = std::move(*look)](TopModel& model) { Apply(found, model); });
    // Those that have ended are in no list any more.
  }
  for (const auto& id : ids) {
    if (ids.size() > kMostOneByOne) break;
    const auto answer = client.Get("jobs/" + id);
    if (!answer) continue;
    auto got = Json::parse(*answer);
    if (got.at("status").contains("tasks")) continue;  // an array is its tasks
    Push([job = JobOf(got)](TopModel& model) { model.Put(job); });
  }
  if (!nodes || all) return;
  TopLook look;
  if (!LookAtNodes(client, look)) return;
  Push([look](TopModel& model) {
    model.gpus = look.gpus;
    model.nodes = look.nodes;
    model.nodes_ready = look.nodes_ready;
  });
}

void TopFeed::Shared::Fetch() {
  client::Client client(target);
  for (;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return over || !dirty.empty() || nodes_dirty || list_dirty; });
      if (over) return;
    }
    std::this_thread::sleep_for(kTogether);  // what happens together is asked for together
    std::set<std::string> ids;
    bool nodes = false, all = false;
    {
      const std::lock_guard lock(mutex);
      ids.swap(dirty);
      nodes = std::exchange(nodes_dirty, false);
      all = std::exchange(list_dirty, false);
    }
    try {
      Renew(client, ids, nodes, all);
    } catch (const std::exception& error) {
      Fault(fmt::format("an answer that cannot be read: {}", error.what()));
    }
  }
}

void TopFeed::Shared::AddLog(std::string_view bytes, std::string& line, int number) {
  const std::lock_guard lock(mutex);
  if (number != log) return;
  for (const char c : bytes) {
    if (c != '\n') {
      line += c;
      continue;
    }
    log_lines.push_back(PlainLine(line));
    line.clear();
  }
  if (log_lines.size() > kMostLogLines) {
    log_lines.erase(log_lines.begin(),
                    log_lines.end() - static_cast<std::ptrdiff_t>(kMostLogLines));
  }
  log_changed = true;
  wake();
}

void TopFeed::Shared::ReadLog(std::int64_t job, bool err, int number) {
  client::Client client(target);
  client::Client::Query query{{"follow", "1"}, {"tail", std::to_string(kLogTail)}};
  if (err) query["err"] = "1";
  std::string line;
  const auto streamed =
      client.Stream(fmt::format("jobs/{}/logs", job), query, [&](std::string_view bytes) {
        AddLog(bytes, line, number);
        const std::lock_guard lock(mutex);
        return !over && number == log;
      });
  AddLog(line.empty() ? "" : "\n", line, number);
  AddLog(streamed ? "(this is all: the job has ended)\n" : "(" + streamed.error().message + ")\n",
         line, number);
}

TopFeed::TopFeed(const client::Target& target, std::function<void()> wake)
    : shared_(std::make_shared<Shared>()) {
  shared_->target = target;
  shared_->wake = std::move(wake);
  // Not joined: one that waits for the daemon cannot be woken, and must not hold up the end.
  std::thread([shared = shared_] { shared->Watch(); }).detach();
  std::thread([shared = shared_] { shared->Fetch(); }).detach();
}

TopFeed::~TopFeed() {
  const std::lock_guard lock(shared_->mutex);
  shared_->over = true;
  shared_->wake = [] {};
  shared_->changed.notify_all();
}

void TopFeed::Take(TopModel& model) {
  std::vector<std::function<void(TopModel&)>> news;
  {
    const std::lock_guard lock(shared_->mutex);
    news.swap(shared_->news);
  }
  for (const auto& one : news) one(model);
}

void TopFeed::FollowLog(std::int64_t job, bool err) {
  int number = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    number = ++shared_->log;
    shared_->log_lines.clear();
    shared_->log_changed = true;
  }
  std::thread([shared = shared_, job, err, number] { shared->ReadLog(job, err, number); }).detach();
}

void TopFeed::StopLog() {
  const std::lock_guard lock(shared_->mutex);
  ++shared_->log;
}

bool TopFeed::TakeLog(std::vector<std::string>& lines) {
  const std::lock_guard lock(shared_->mutex);
  if (!std::exchange(shared_->log_changed, false)) return false;
  lines = shared_->log_lines;
  return true;
}

}  // namespace muster::cli
