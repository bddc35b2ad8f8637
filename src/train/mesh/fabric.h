// Fabric: bulk data between the members of one generation, offered by one and looked at by another.
//
// Who has data offers it to a peer under a tag; the peer looks at it where it lies when both share
// memory, else in a buffer it was received into, and says when it is done. So a sum over members
// reads each number once and copies nothing. A tag is offered to a peer again only after Taken has
// returned. Every call may be made from any thread. After Abort, or the loss of any member, every
// wait ends with an error at once; the caller's memory is not read or written by then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace muster::train {

using MemberId = std::uint64_t;
using Tag = std::uint64_t;

class Fabric {
 public:
  virtual ~Fabric() = default;  // nobody waits in it any more

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual bool SharesMemory(int peer) const = 0;

  // Does not wait. The bytes stay as they are until Taken returns; those in Mesh::memory() are not
  // copied where memory is shared, others are.
  virtual void Offer(int peer, Tag tag, std::span<const std::byte> bytes) = 0;
  // Waits for what the peer offers under the tag; valid until Done.
  virtual Result<std::span<const std::byte>> Look(int peer, Tag tag) = 0;
  // The same into memory of the caller, and done; of another size: an error.
  virtual Result<void> Fetch(int peer, Tag tag, std::span<std::byte> into) = 0;
  // Fetch with this memory will come: what arrives over a connection may be received into it from
  // now on.
  virtual void Expect(int peer, Tag tag, std::span<std::byte> into) = 0;
  // If the peer has withdrawn it meanwhile, the bytes may have been wrong: aborts.
  virtual void Done(int peer, Tag tag) = 0;
  // Waits until the peer is done with what was offered.
  virtual Result<void> Taken(int peer, Tag tag) = 0;

  // Nothing more is to come from this peer or to go to it: its loss is no loss.
  virtual void Release(int peer) = 0;

  // Here, and for the other members of the generation as soon as they hear of it.
  virtual void Abort(const std::string& why) = 0;
  virtual bool aborted() const = 0;
};

}  // namespace muster::train
