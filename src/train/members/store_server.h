// StoreServer: a Store for workers on several hosts that see no common folder.
//
// It keeps every key in a FolderStore, so one that was killed goes on where it was when it is
// started again, on the same port unless somebody has that now; a claim is on the disk before it is
// answered. Who asks must prove to know the secret of the job, and what is said is sealed. One
// thread serves everybody: workers ask when the gang changes, and the chief a few times in each
// time-out. The job goes on while the store is away, until its gang has to change.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "train/members/folder_store.h"
#include "train/members/sealed_line.h"
#include "train/members/store_message.h"
#include "train/mesh/reception.h"

namespace muster::train {

struct StoreServerOptions {
  std::string folder;
  std::string address = "127.0.0.1";  // without a port: the one of last time, or any
  std::string secret;                 // of the job
  std::int64_t timeout_ms = 900;      // for strangers to prove themselves
};

class StoreServer {
 public:
  static Result<std::unique_ptr<StoreServer>> Open(const StoreServerOptions& options);
  ~StoreServer();

  const std::string& address() const { return address_; }  // with the port

 private:
  struct Client {
    SealedLine line;
    std::int64_t heard_ns = 0;
  };

  StoreServer(const StoreServerOptions& options, Listening listening);

  void Run();
  int WaitMs(std::int64_t now_ns) const;
  void Admit(Greeter& greeter);
  void Serve(int fd);
  std::string Answer(const std::string& question);
  void Tick(std::int64_t now_ns);

  FolderStore store_;
  Identity identity_;
  std::string address_;
  Fd epoll_, wake_;
  Reception reception_;
  std::map<int, Client> clients_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace muster::train
