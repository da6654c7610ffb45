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

/// What a terminal obeys or a reader does not see: C0, C1, DEL, marks of direction, zero width,
/// separators of lines, the byte order mark and tags.
bool IsUnseen(std::uint32_t code) noexcept;

/// True if well-formed UTF-8 without control characters.
bool IsPrintableUtf8(std::string_view text) noexcept;

/// The text as any database takes it: zero bytes and bytes that are not UTF-8 become \xNN.
/// At most `most` bytes; a longer one ends after a whole character.
std::string StorableUtf8(std::string_view text, std::size_t most);

}  // namespace weir
