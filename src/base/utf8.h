#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

/// The length of the well-formed UTF-8 sequence at the start of `text`; 0 if there is none.
std::size_t Utf8SequenceLength(std::string_view text) noexcept;

/// The code point of one well-formed sequence.
std::uint32_t CodePointOf(std::string_view sequence) noexcept;

/// Control characters and invisible ones: C0, C1, DEL, directional marks, zero-width characters,
/// line separators, the byte order mark and tags.
bool IsUnseen(std::uint32_t code) noexcept;

/// True if well-formed UTF-8 without control characters.
bool IsPrintableUtf8(std::string_view text) noexcept;

/// The text in a form that any database accepts: zero bytes and invalid UTF-8 become \xNN.
/// At most `most` bytes; a longer one ends after a whole character.
std::string StorableUtf8(std::string_view text, std::size_t most);

}  // namespace weir
