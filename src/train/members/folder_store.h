// FolderStore: a Store in a folder that all workers of the job see, a file for each key.
//
// A claim is a hard link to a complete file, which the kernel makes once and for all, also on NFS;
// a write is a rename. So no reader ever sees a half of a value. Only for the job's own user. Where
// `durable`, a claim that was made outlives also the crash of the machine.
#pragma once

#include <string>

#include "train/members/store.h"

namespace muster::train {

class FolderStore final : public Store {
 public:
  explicit FolderStore(std::string folder, bool durable = false)
      : folder_(std::move(folder)), durable_(durable) {}

  Result<std::string> Claim(const std::string& key, const std::string& value) override;
  Result<void> Write(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>> Read(const std::string& key) override;

 private:
  // A complete file under a name of its own.
  Result<std::string> Draft(const std::string& value, bool durable) const;

  std::string folder_;
  bool durable_;
};

}  // namespace muster::train
