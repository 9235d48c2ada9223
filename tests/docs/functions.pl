#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A function that a document names together with a file is in that file: functions.pl DOCUMENT...
# Two forms are known, within a paragraph:
#
#	`src/x/y.c`: `f()` does this; `g()` does that      f is defined there, g at least called
#	`f()` in `src/x/y.c`                               f is defined there
#
# Called by paths.sh. Prints what is wrong.

use strict;
use warnings;

my $status = 0;
my %text;

sub text_of {
	my ($file) = @_;

	$text{$file} //= do {
		open(my $in, '<', $file) or return '';
		local $/;
		<$in>;
	};
	return $text{$file};
}

# A definition begins in the first column and has a body.
sub defines {
	my ($file, $function) = @_;

	return text_of($file) =~ /^[a-z_][^;{}]*\b\Q$function\E\([^;{}]*\)\s*\{/mi;
}

sub complain {
	my ($document, $file, $function, $what) = @_;

	print "$document: says that $function() is in $file, where it is not $what\n";
	$status = 1;
}

my $path = qr{`((?:src|programs|tests|bench)/[\w./-]+\.[ch])`};
my $call = qr{`(\w+)\(\)`};

for my $document (@ARGV) {
	# a paragraph or an item of a list, in one line
	for my $paragraph (split(/\n\s*\n|\n(?=\s*(?:\d+\.|-)\s)/, text_of($document))) {
		$paragraph =~ s/\s+/ /g;
		while ($paragraph =~ /$call in $path/g) {
			complain($document, $2, $1, 'defined') unless defines($2, $1);
		}
		$paragraph =~ s/$call in $path/;`$2`/g;
		# from one file to the next
		while ($paragraph =~ /$path:((?:(?!$path).)*)/g) {
			my ($file, $rest) = ($1, $2);

			if ($rest =~ /^ $call/) {
				complain($document, $file, $1, 'defined') unless defines($file, $1);
			}
			while ($rest =~ /$call/g) {
				next if $1 =~ /^ibv_/; # inline in verbs.h: what programs call
				complain($document, $file, $1, 'named')
					unless text_of($file) =~ /\b\Q$1\E\b/;
			}
		}
	}
}
exit $status;
