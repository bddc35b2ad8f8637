// TopFeed: brings what `muster top` shows, by a list and then the stream of events behind it.
//
// Nothing is asked again that no event named: a job is asked for when something happened to it, the
// nodes when a worker or a node came or went, both at most five times a second. Only when more jobs
// changed at once than are worth asking for one by one, or the stream broke, is the list read
// again. Works on threads of its own; what they bring is taken by the one that draws.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/top_model.h"

namespace muster::cli {

// One look at everything, and the answers themselves for a program.
struct TopLook {
  std::vector<TopJob> jobs;
  std::vector<std::string> job_texts;  // JSON
  std::vector<TopGpus> gpus;
  std::int64_t nodes = 0, nodes_ready = 0;
  std::uint64_t revision = 0;
  std::string version;
  bool more = false;
};
Result<TopLook> LookAtAll(client::Client& client);
void Apply(TopLook look, TopModel& model);

class TopFeed {
 public:
  // `wake` is called from other threads whenever there is something to take.
  TopFeed(const client::Target& target, std::function<void()> wake);
  ~TopFeed();  // does not wait for them
  TopFeed(const TopFeed&) = delete;
  TopFeed& operator=(const TopFeed&) = delete;

  void Take(TopModel& model);

  // The output of a job, line by line, until another one is followed.
  void FollowLog(std::int64_t job, bool err);
  void StopLog();
  // False: nothing new.
  bool TakeLog(std::vector<std::string>& lines);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::cli
