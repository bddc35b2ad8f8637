// Service: the one thread that owns the controller.
//
// Others hand it work; it makes the changes that have arrived, then one Turn() for all of them,
// then answers them and whoever wants to read. While a turn waits for the disk the next one's work
// gathers, which is what makes a commit cheap under load. When the store cannot be written the
// changes of that turn are answered with the error, and the state is read again from the store
// until writing works; until then changes are refused and not tried. So nothing is shown or kept
// that was not written.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "control/controller.h"

namespace muster::control {

class Service {
 public:
  using Work = std::function<void(Controller&)>;
  // Called after the turn, with what became of its commit. An error may mean that the change was
  // not even tried.
  using Answer = std::function<void(const Result<void>& written)>;
  using Log = std::function<void(const std::string&)>;

  // `doorbells` are files that become readable when a pool has something to report.
  Service(Controller& controller, Clock& clock, std::vector<int> doorbells, Log log);
  ~Service() { Stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Ends the turn that runs and writes a snapshot; work that comes later is dropped.
  void Stop();
  // From any thread.
  void Read(Work work);
  void Change(Work work, Answer answer);

 private:
  struct Task {
    Work work;
    Answer answer;  // none: it only reads
  };
  void Put(Task task);
  void Loop();
  void Wait();
  void TurnOnce(const std::vector<Task>& tasks);

  Controller& controller_;
  Clock& clock_;
  std::vector<int> doorbells_;
  Log log_;
  int bell_ = -1;
  std::mutex mutex_;
  std::vector<Task> inbox_;  // guarded by mutex_
  bool stop_ = false;        // guarded by mutex_
  Result<void> healthy_;
  std::int64_t retry_ms_ = 0;
  std::thread thread_;
};

}  // namespace muster::control
