%% SPDX-License-Identifier: Apache-2.0
%% @doc `Destination ! Message' becomes a message of a channel, where nobody looks at the value.
%%
%% What is sent by a channel is not in order with what is sent without it, so this is done only
%% where it is asked for.
-module(weft_migrate_channel).

-export([look/3]).

-spec look(Channel :: atom(), weft_migrate_tree:site(), weft_migrate_rule:context()) ->
          weft_migrate_rule:result().
look(Channel, #{node := Node} = Site, Context) ->
    case erl_syntax:type(Node) of
        infix_expr ->
            case erl_syntax:operator_name(erl_syntax:infix_expr_operator(Node)) of
                '!' -> sent(Channel, Site, Context);
                _ -> none
            end;
        _ ->
            none
    end.

sent(Channel, #{path := Path} = Site, Context) ->
    case {weft_migrate_tree:is_macro(Site), weft_migrate_tree:is_ignored(Site), Path} of
        {true, _, _} -> {leave, "it is in a macro"};
        {false, true, [Parent | _]} ->
            case lists:member(erl_syntax:type(Parent), [clause, block_expr, try_expr]) of
                true -> edit(Channel, Site, Context);
                false -> {leave, "its value is used"}
            end;
        {false, false, _} -> {leave, "its value is used"}
    end.

%% As its value is ignored, a comma follows.
edit(Channel, #{node := Node, form := Form}, #{bytes := Bytes}) ->
    At = weft_migrate_tree:place(Node),
    Right = weft_migrate_tree:place(erl_syntax:infix_expr_right(Node)),
    case {weft_migrate_range:until(Form, At, ['!']), weft_migrate_range:until(Form, At, [',']),
          weft_migrate_range:word(Form, Right)} of
        {{ok, {From, Left}}, {ok, {From, All}}, {ok, {Message, _}}} ->
            Between = binary:part(Bytes, From + Left, Message - From - Left),
            case string:trim(Between) of
                <<"!">> ->
                    {edit, [{From, 0, <<"weft:send(">>},
                            {From + Left, byte_size(Between), <<", ">>},
                            {From + All, 0, end_of(Channel)}], []};
                _ ->
                    {leave, "there is a comment or a parenthesis in it"}
            end;
        _ ->
            {leave, "where it ends is not understood"}
    end.

end_of(Channel) ->
    unicode:characters_to_binary(io_lib:format(", ~tp)", [Channel])).
