// The output of jobs: as it was written, or line by line with where it came from.
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/job_verbs.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestLine = std::size_t{1} << 20;

// Lines with their rank and stream: {"rank": 0, "stream": "out", "line": "..."} and the same as
// items of a YAML list. A line that is too long to hold comes in pieces, of which all but the last
// say "more". Bytes that are no UTF-8 are replaced: JSON cannot have them.
class MarkedLines {
 public:
  MarkedLines(Output output, std::int64_t rank, bool err)
      : output_(output), rank_(rank), err_(err) {}

  void Put(std::string_view bytes) {
    for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
      line_ += bytes.substr(0, end);
      Print(false);
      bytes.remove_prefix(end + 1);
    }
    line_ += bytes;
    if (line_.size() > kLongestLine) Print(true);
  }
  void End() {
    if (!line_.empty()) Print(false);
  }

 private:
  void Print(bool more) {
    const char* stream = err_ ? "err" : "out";
    if (output_ == Output::kWide) {
      std::cout << rank_ << ' ' << stream << "  " << line_ << '\n';
    } else {
      nlohmann::ordered_json object = {{"rank", rank_}, {"stream", stream}, {"line", line_}};
      if (more) object["more"] = true;
      const bool yaml = output_ == Output::kYaml;
      const auto text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
      std::cout << (yaml ? "- " : "") << (yaml ? SafeJson(text) : text) << '\n';
    }
    line_.clear();
  }

  Output output_;
  std::int64_t rank_;
  bool err_;
  std::string line_;
};

client::Client::Query QueryOf(const LogOptions& options) {
  client::Client::Query query;
  query["worker"] = std::to_string(options.worker);
  if (options.follow) query["follow"] = "1";
  if (options.err) query["err"] = "1";
  if (options.tail >= 0) query["tail"] = std::to_string(options.tail);
  if (options.since_ms > 0) query["since"] = std::to_string(options.since_ms);
  return query;
}

}  // namespace

int Logs(Session& session, const LogOptions& options) {
  if (options.follow) {
    session.Persist();
    AwaitStart(session, options.job);
  }
  const std::string path = "jobs/" + options.job + "/logs";
  if (options.tail < 0 && options.since_ms == 0) {
    auto query = QueryOf(options);
    query["about"] = "1";
    const auto about = session.client().Get(path, query);
    if (!about) return Refuse(about.error());
    const auto facts = Json::parse(*about);
    if (facts.value("full", false)) {
      std::cerr << "muster: of this log the last " << facts.value("files", 0)
                << " files are kept; what was written before them, if anything, has been dropped\n";
    }
  }
  MarkedLines lines(session.output(), options.worker, options.err);
  const auto print = [&](std::string_view bytes) {
    if (session.output() == Output::kTable) {
      std::cout << bytes;
    } else {
      lines.Put(bytes);
    }
    std::cout.flush();
    return std::cout.good();
  };
  const auto query = QueryOf(options);
  const auto streamed = options.follow ? session.client().FollowLog(path, query, print)
                                       : session.client().Stream(path, query, print);
  lines.End();
  return streamed ? 0 : Refuse(streamed.error());
}

Result<void> FollowBoth(Session& session, const std::string& job, std::ostream& out,
                        std::ostream& err) {
  auto patience = session.Persist();
  AwaitStart(session, job);
  std::mutex mutex;  // both may go to the same place
  const auto follow = [&](client::Client& client, bool is_err, std::ostream& to) {
    LogOptions options;
    options.follow = true;
    options.err = is_err;
    return client.FollowLog("jobs/" + job + "/logs", QueryOf(options), [&](std::string_view bytes) {
      const std::lock_guard lock(mutex);
      to << bytes;
      to.flush();
      return to.good();
    });
  };
  Result<void> second;
  std::thread other([&] {
    client::Client client(session.target());
    patience.known = true;  // the session's has heard of it
    client.Persist(patience);
    second = follow(client, true, err);
  });
  auto first = follow(session.client(), false, out);
  other.join();
  return first ? second : first;
}

}  // namespace muster::cli
