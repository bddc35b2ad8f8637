// Service: the one thread that owns the controller.
//
// Others hand it work; it runs what has arrived, then one Turn() for all of it, then the answers.
// While a turn waits for the disk the next one's work gathers, which is what makes a commit cheap
// under load. When the store cannot be written the work of that turn is answered with the error,
// and the state is read again from the store until writing works: nothing is kept that was not
// written.
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
  // Called after the turn, with what became of its commit.
  using Answer = std::function<void(const Result<void>& written)>;
  using Work = std::function<Answer(Controller&)>;
  using Log = std::function<void(const std::string&)>;

  // `doorbells` are files that become readable when a pool has something to report.
  Service(Controller& controller, Clock& clock, std::vector<int> doorbells, Log log);
  ~Service() { Stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Ends the turn that runs and writes a snapshot; work that comes later is dropped.
  void Stop();
  // From any thread. Work that only reads answers inside and returns nothing.
  void Run(Work work);

 private:
  void Loop();
  void Wait();
  void TurnOnce(const std::vector<Work>& work);

  Controller& controller_;
  Clock& clock_;
  std::vector<int> doorbells_;
  Log log_;
  int bell_ = -1;
  std::mutex mutex_;
  std::vector<Work> inbox_;  // guarded by mutex_
  bool stop_ = false;        // guarded by mutex_
  Result<void> healthy_;
  std::int64_t retry_ms_ = 0;
  std::thread thread_;
};

}  // namespace muster::control
