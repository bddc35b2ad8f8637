// FolderStore: a Store in a folder that all workers of the job see, a file for each key.
//
// A claim is a hard link to a complete file, which the kernel makes once and for all, also on NFS;
// a write is a rename. So no reader ever sees a half of a value. Only for the job's own user. What
// is claimed is on the disk before it gets its name: after a crash of the machine a claim is there
// as it was made, or not at all. The latter is no harm where the workers see the folder of one
// machine, for then they are gone with it; a file system that several machines see keeps names at
// once. Where others live on who know of a claim, as those of a store do, `durable` keeps its name
// before it is answered. Writes are hints that may be lost or empty.
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
